// Checkpoints at other lengths: how a text is cut, what is scored, and what of attention is told.
#include "train/length_eval.hpp"

#include <cmath>
#include <map>
#include <mutex>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/random_model.hpp"
#include "model/save.hpp"
#include "support/temp_folder.hpp"
#include "train/length_probe.hpp"

namespace masque::train {
namespace {

using test::TempFolder;
using Kind = probe::LengthPolicy::Kind;

const std::string kRotary = R"("position_embedding_type": "rotary")";
const std::string kLearned = R"("position_embedding_type": "learned")";
const std::string kCausal = R"(, "mask": "causal", "head": "causal")";
const std::string kTta = R"(, "streams": "fixed_keys")";

/// A text, a tokenizer with a template or without, and tiny models with random weights.
class Bench {
 public:
  explicit Bench(bool with_template = true) {
    // Without [CLS] and [SEP] there is no template.
    test::write_file(folder_ / "vocab.txt",
                     with_template
                         ? "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\non\nmat\n.\ndog\n"
                         : "the\ncat\nsat\non\nmat\n.\ndog\n[UNK]\n");
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines += i % 3 == 0 ? "the cat sat on the mat.\n" : "the dog sat.\nthe mat sat on.\n";
    test::write_file(folder_ / "text", lines);
    const std::string path = folder_ / "vocab.txt";
    tokenizer_ = std::make_unique<const text::Tokenizer>(
        text::Tokenizer::open(with_template ? path : "whitespace:" + path));
  }

  StreamRequest request(const std::string& objective, std::vector<Index> lengths) const {
    StreamRequest request;
    request.text = folder_ / "text";
    request.objective = objective;
    request.lengths = std::move(lengths);
    request.seed = 5;
    return request;
  }
  LengthStream stream(const StreamRequest& request) const { return {request, *tokenizer_}; }

  const model::TreatableModel& model(const std::string& members) {
    const std::string path = folder_ / fmt::format("model{}", models_.size());
    const model::Design design = model::test::tiny_design(members);
    model::save_model(path, design, model::test::random_weights<float>(design, 7));
    models_.push_back(std::make_unique<model::TreatableModel>(path, "", kernel::Precision::kF32));
    return *models_.back();
  }

  LengthCells cells(const model::TreatableModel& model, const TreatmentLists& lists,
                    std::vector<Index> lengths) {
    LengthCells cells;
    cells.model = &model;
    cells.treatments = make_treatments(lists);
    cells.lengths = std::move(lengths);
    cells.trained = model.trained_length();
    cells.mask_token_id = 4;
    cells.note = [this](const std::string& line) { notes.push_back(line); };
    return cells;
  }

  std::vector<std::string> notes;

 private:
  TempFolder folder_;
  std::unique_ptr<const text::Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<model::TreatableModel>> models_;
};

/// Targets by their place in the text.
std::map<Index, TokenId> targets_of(const LengthStream& stream, Index length) {
  std::map<Index, TokenId> all;
  std::size_t next = 0;
  for (const Example& block : stream.examples(length)) {
    for (const TokenId target : block.targets) {
      CHECK(all.emplace(stream.places(length)[next], target).second);
      ++next;
    }
  }
  CHECK(next == stream.places(length).size());
  return all;
}

TEST_CASE("whatever the policy, the same tokens are targets at every length") {
  const std::vector<Index> lengths{33, 9, 16};
  for (const bool with_template : {true, false}) {
    const Bench bench(with_template);
    for (const char* objective : {"mlm", "tta", "clm"}) {
      if (!with_template && std::string(objective) == "mlm") continue;  // nothing to hide with
      for (const probe::LengthPolicy policy :
           {probe::LengthPolicy{Kind::kChunk, 0}, probe::LengthPolicy{Kind::kSlide, 5},
            probe::LengthPolicy{Kind::kLast, 0}}) {
        CAPTURE(objective);
        CAPTURE(probe::policy_text(policy));
        StreamRequest request = bench.request(objective, lengths);
        request.policy = policy;
        const LengthStream stream = bench.stream(request);
        const bool causal = std::string(objective) == "clm";
        const auto expected = targets_of(stream, 9);
        CHECK(expected.size() > 5);
        std::map<Index, TokenId> read;  // what stands in the text at a place
        for (const Index length : lengths) {
          CHECK(targets_of(stream, length) == expected);
          std::size_t next = 0;
          for (const Example& block : stream.examples(length)) {
            CHECK(block.size() == length);
            for (std::size_t r = 0; r < block.rows.size(); ++r) {
              const Index place = stream.places(length)[next++];
              const Index row = block.rows[r] + (causal ? 1 : 0);
              CHECK(block.targets[r] == stream.ids()[static_cast<std::size_t>(place)]);
              // Hidden in the same way.
              const TokenId id = block.ids.at(static_cast<std::size_t>(row));
              CHECK(read.emplace(place, id).first->second == id);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("with the policy last, longer blocks end at the same tokens") {
  const Bench bench;
  StreamRequest request = bench.request("tta", {9, 33});
  request.policy = {Kind::kLast, 0};
  const LengthStream stream = bench.stream(request);
  REQUIRE(stream.examples(9).size() == stream.examples(33).size());
  REQUIRE(stream.examples(9).size() > 3);
  for (std::size_t i = 0; i < stream.examples(9).size(); ++i) {
    const Example& near = stream.examples(9)[i];
    const Example& far = stream.examples(33)[i];
    CHECK(near.targets == far.targets);
    CHECK(std::ssize(near.targets) == 7);
    CHECK(std::equal(near.ids.begin() + 1, near.ids.end(), far.ids.end() - 8));
  }
}

TEST_CASE("a stream is refused") {
  const Bench bench;
  StreamRequest request = bench.request("mlm", {9, 16});
  request.policy = {Kind::kSlide, 8};
  CHECK_THROWS_AS(bench.stream(request), UsageError);
  request.policy = {Kind::kFirst, 0};
  CHECK_THROWS_AS(bench.stream(request), UsageError);
  request = bench.request("plm", {9});
  CHECK_THROWS_AS(bench.stream(request), UsageError);
  request = bench.request("mlm", {9, 4000});
  CHECK_THROWS_AS(bench.stream(request), InputError);
}

/// Σ of losses of every block run by itself, by the model as it is opened without treatments.
double plain_loss(const model::TreatableModel& model, const LengthStream& stream, Index length) {
  const auto own = model::open_model(model.path(), {.mask_token_id = 4});
  double sum = 0;
  for (const Example& block : stream.examples(length)) {
    model::Batch batch;
    batch.add(block.ids);
    model::Request request;
    request.rows = block.rows;
    request.targets = block.targets;
    if (block.rows.empty()) continue;
    for (const double x : own->run(batch, request)) sum -= x;
  }
  return sum;
}

TEST_CASE("without a treatment, chunks are blocks that the model reads one by one") {
  Bench bench;
  for (const auto& [objective, members] : {std::pair<std::string, std::string>{"mlm", kRotary},
                                           {"mlm", kLearned},
                                           {"tta", kLearned + kTta},
                                           {"clm", kLearned + kCausal}}) {
    CAPTURE(objective);
    const model::TreatableModel& model = bench.model(members);
    CHECK(length_objective(model) == objective);
    const std::vector<Index> lengths{8, 12};
    const LengthStream stream = bench.stream(bench.request(objective, lengths));
    LengthCells cells = bench.cells(model, {}, lengths);
    const auto scores = score_lengths(cells, stream, objective);
    REQUIRE(scores.size() == 2);
    for (const LengthScore& score : scores) {
      CHECK(score.loss.values ==
            doctest::Approx(plain_loss(model, stream, score.cell.length)).epsilon(1e-12));
      CHECK(score.loss.counts == static_cast<double>(stream.places(8).size()));
      CHECK(score.accuracy.mean() <= 1);
      CHECK(score.loss.standard_error() > 0);
    }
    CHECK(scores[0].loss.values != scores[1].loss.values);
    // Batches change nothing.
    cells.batch_tokens = 1;
    const auto again = score_lengths(cells, stream, objective);
    CHECK(again[1].loss.values == scores[1].loss.values);
    CHECK(again[1].accuracy.values == scores[1].accuracy.values);
  }
}

TEST_CASE("log n at the trained length changes nothing, nor a window that hides nothing") {
  Bench bench;
  for (const std::string& members : {kRotary, kRotary + kCausal}) {
    const model::TreatableModel& model = bench.model(members);
    const std::string objective = length_objective(model);
    const std::vector<Index> lengths{8, 12, 30};
    const LengthStream stream = bench.stream(bench.request(objective, lengths));
    const auto log_n =
        score_lengths(bench.cells(model, {.normalizers = "own,log_n"}, lengths), stream, objective);
    REQUIRE(log_n.size() == 6);
    for (std::size_t i = 0; i < 2; ++i) CHECK(log_n[i].loss.values == log_n[i + 3].loss.values);
    CHECK(log_n[2].loss.values != log_n[5].loss.values);
    // The own mask goes first.
    const auto windows =
        score_lengths(bench.cells(model, {.windows = "12,2"}, lengths), stream, objective);
    REQUIRE(windows.size() == 9);
    for (std::size_t i = 0; i < 2; ++i) CHECK(windows[i].loss.values == windows[i + 3].loss.values);
    CHECK(windows[2].loss.values != windows[5].loss.values);
    for (std::size_t i = 0; i < 3; ++i) CHECK(windows[i].loss.values != windows[i + 6].loss.values);
  }
}

TEST_CASE("a window is the mask that hides what it hides") {
  Bench bench;
  const model::TreatableModel& model = bench.model(kRotary);
  const std::vector<Index> lengths{12};
  const LengthStream stream = bench.stream(bench.request("mlm", lengths));
  const auto window = score_lengths(bench.cells(model, {.windows = "3"}, lengths), stream, "mlm");
  const auto mask =
      score_lengths(bench.cells(model, {.masks = "own; window(2)"}, lengths), stream, "mlm");
  CHECK(window[0].loss.values == mask[0].loss.values);
  CHECK(window[1].loss.values == mask[1].loss.values);
}

TEST_CASE("treatments are all combinations, and are named") {
  const auto all = make_treatments({.positions = "own,yarn(beta_fast=16)",
                                    .normalizers = "own,log_n",
                                    .masks = "own; window(3) ;2*full"});
  REQUIRE(all.size() == 12);
  CHECK(all[0].mask_text() == "own");
  CHECK(all[1].mask_text() == "window(3)");
  CHECK(all[2].mask_text() == "2*full");
  CHECK(all[3].normalizer == "log_n");
  CHECK(all[11].position->text() == "yarn(beta_fast=16)");
  CHECK(all[3].options(64, kernel::Precision::kF32).normalizer == "log_n(base=64, clip=64)");
  CHECK(make_treatments({.windows = "4,8"})[2].mask_text() == "window:8");
  for (const TreatmentLists& wrong :
       {TreatmentLists{.positions = "own,own"}, TreatmentLists{.positions = "what"},
        TreatmentLists{.normalizers = "what"}, TreatmentLists{.masks = "own;own"},
        TreatmentLists{.masks = "what("}, TreatmentLists{.windows = "0"},
        TreatmentLists{.masks = "full", .windows = "4"}})
    CHECK_THROWS_AS(make_treatments(wrong), UsageError);
}

TEST_CASE("what a model cannot do is refused") {
  Bench bench;
  const model::TreatableModel& masked = bench.model(kLearned);
  const model::TreatableModel& causal = bench.model(kLearned + kCausal);
  CHECK_THROWS_AS(check_length_objective("clm", masked), UsageError);
  CHECK_THROWS_AS(check_length_objective("tta", masked), UsageError);
  CHECK_THROWS_AS(check_length_objective("mlm", causal), UsageError);
  CHECK_THROWS_AS(check_length_objective("plm", masked), UsageError);
  const model::TreatableModel& headless = bench.model(R"("head": "none")");
  CHECK_THROWS_AS(length_objective(headless), InputError);
  const std::vector<Index> lengths{8, 30};
  const LengthStream stream = bench.stream(bench.request("clm", lengths));
  CHECK_THROWS_AS(score_lengths(bench.cells(causal, {.masks = "own;full"}, {8}), stream, "clm"),
                  UsageError);
  CHECK_THROWS_AS(score_lengths(bench.cells(causal, {.positions = "own,ntk"}, {8}), stream, "clm"),
                  UsageError);
  CHECK_THROWS_AS(score_lengths(bench.cells(causal, {.masks = "3*causal"}, {8}), stream, "clm"),
                  UsageError);
  // A table that ends is told, and the rest is scored.
  const auto scores =
      score_lengths(bench.cells(causal, {.positions = "own,interpolated"}, lengths), stream, "clm");
  REQUIRE(scores.size() == 3);
  CHECK(scores[0].cell.length == 8);
  CHECK(scores[1].cell.treatment == 1);
  CHECK(bench.notes == std::vector<std::string>{"own: 12 places, so nothing at length 30"});
  CHECK_THROWS_AS(score_lengths(bench.cells(causal, {}, {30}), stream, "clm"), UsageError);
}

/// Entropy, deviation of scores and log of the mean Z of every row of one head of a layer, from the
/// scores themselves.
class Brute final : public model::Observer {
 public:
  explicit Brute(Index wanted) : layer(wanted) {}
  void attention_rows(Index, Index l, Index, const model::AttentionRows<float>& rows) override {
    if (l != layer) return;
    const std::lock_guard lock(mutex_);
    double all_z = 0;
    for (Index i = 0; i < rows.scores.rows; ++i) {
      double sum = 0, squares = 0, z = 0, weighted = 0, n = 0;
      for (const float s : rows.scores.row_span(i)) {
        if (std::isinf(s)) continue;
        const double x = static_cast<double>(s);
        ++n;
        sum += x;
        squares += x * x;
        z += std::exp(x);
        weighted += x * std::exp(x);
      }
      entropy += std::log(z) - weighted / z;
      spread += std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
      all_z += z / static_cast<double>(rows.scores.rows);
      ++count;
    }
    log_z += std::log(all_z);
    ++heads;
  }
  Index layer;
  double entropy = 0, spread = 0, log_z = 0, count = 0, heads = 0;

 private:
  std::mutex mutex_;  // heads may come at the same time
};

TEST_CASE("attention at a length is that of the scores") {
  Bench bench;
  for (const std::string& members : {kRotary, kLearned + kCausal}) {
    const model::TreatableModel& model = bench.model(members);
    const std::vector<Index> lengths{8, 12};
    const LengthStream stream = bench.stream(bench.request("tta", lengths));
    const auto rows = probe_lengths(bench.cells(model, {}, lengths), stream, true);
    REQUIRE(rows.size() == 6);
    CHECK(!rows[3].layer.has_value());
    const auto own = model::open_model(model.path(), {});
    for (Index layer = 0; layer < 2; ++layer) {
      const AttentionAtLength& row = rows[static_cast<std::size_t>(4 + layer)];
      CHECK(row.cell.length == 12);
      CHECK(row.layer == layer);
      CHECK(row.blocks == std::ssize(stream.examples(12)));
      Brute brute(layer);
      for (const Example& block : stream.examples(12)) {
        model::Batch batch;
        batch.add(block.ids);
        const model::Request request{
            .attentions = true, .attention_rows = true, .attention_scores = true};
        own->run(batch, request, &brute);
      }
      CHECK(row.entropy == doctest::Approx(brute.entropy / brute.count).epsilon(1e-4));
      CHECK(row.score_spread == doctest::Approx(brute.spread / brute.count).epsilon(1e-4));
      CHECK(row.log_partition == doctest::Approx(brute.log_z / brute.heads).epsilon(1e-4));
    }
    CHECK(rows[3].entropy == doctest::Approx((rows[4].entropy + rows[5].entropy) / 2));
  }
}

TEST_CASE("a mean over queries that all read one key is a sink") {
  Bench bench;
  const model::TreatableModel& model = bench.model(kRotary);
  const LengthStream stream = bench.stream(bench.request("tta", {12}));
  const auto rows =
      probe_lengths(bench.cells(model, {.masks = "full; keep(0); diagonal"}, {12}), stream, false);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].sink == doctest::Approx(1));
  CHECK(rows[1].entropy == doctest::Approx(0));
  CHECK(rows[2].max_weight == doctest::Approx(1));
  CHECK(rows[2].sink == doctest::Approx(1.0 / 12));
  CHECK(rows[0].entropy > 0.5);
}

}  // namespace
}  // namespace masque::train
