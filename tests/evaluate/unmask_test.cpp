// Unmasking: which tokens come when, by brute force; blocks with kept keys and values against whole
// passes.
#include "evaluate/write/unmask.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "evaluate/write/masked_generation.hpp"
#include "fake_model.hpp"
#include "mask/builtin.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using model::HeadKind;
using test::contains;
using test::message_of;

constexpr TokenId kBlank = 4;
constexpr double kNever = -std::numeric_limits<double>::infinity();

std::vector<double> log_probabilities(std::vector<double> logits) {
  logits[kBlank] = kNever;
  const kernel::LogSum whole = log_sum(logits);
  for (double& x : logits) x = x - whole;
  return logits;
}

std::vector<double> fake_at(const std::vector<TokenId>& ids, Index place) {
  return log_probabilities(fake_logits(ids, place, 12, [](Index) { return true; }));
}

/// LLaDA's loop, as its paper has it: of all masks the likeliest tokens, `counts[k]` at step k.
std::vector<TokenId> by_confidence(std::vector<TokenId> ids, Index first, Index last,
                                   const std::vector<Index>& counts, double& sum) {
  for (const Index count : counts) {
    std::vector<std::tuple<double, Index, TokenId>> found;
    for (Index i = first; i < last; ++i) {
      if (ids[static_cast<std::size_t>(i)] != kBlank) continue;
      const auto p = fake_at(ids, i);
      const auto best = std::ranges::max_element(p);
      found.emplace_back(-*best, i, static_cast<TokenId>(best - p.begin()));
    }
    std::ranges::sort(found);
    for (Index k = 0; k < count; ++k) {
      const auto [minus, place, token] = found[static_cast<std::size_t>(k)];
      ids[static_cast<std::size_t>(place)] = token;
      sum -= minus;
    }
  }
  return ids;
}

UnmaskOptions unmask_options_of(Index iterations, Index block_size = 0) {
  UnmaskOptions options;
  options.iterations = iterations;
  options.block_size = block_size;
  options.mask = kBlank;
  return options;
}

/// A text that begins so, then masks, then [3].
MaskedText blank_text(std::uint64_t id, std::vector<TokenId> ids, Index masks) {
  MaskedText text;
  text.id = id;
  for (Index i = 0; i < masks; ++i) text.places.push_back(std::ssize(ids) + i);
  ids.insert(ids.end(), static_cast<std::size_t>(masks), kBlank);
  ids.push_back(3);
  text.sentence.ids = std::move(ids);
  return text;
}

std::vector<MaskedText> blank_texts(Index masks) {
  return {blank_text(0, {2, 5, 7}, masks), blank_text(1, {2}, masks),
          blank_text(9, {2, 8, 8, 6}, masks)};
}

TEST_CASE("confidence: the likeliest tokens first, as many at every step") {
  const FakeModel model(HeadKind::kMasked);
  const std::map<Index, std::vector<Index>> counts{{0, {1, 1, 1, 1, 1, 1, 1}},
                                                   {1, {7}},
                                                   {3, {3, 2, 2}},
                                                   {7, {1, 1, 1, 1, 1, 1, 1}},
                                                   {20, {1, 1, 1, 1, 1, 1, 1}}};
  const std::vector<MaskedText> texts = blank_texts(7);
  for (const auto& [iterations, steps] : counts) {
    CAPTURE(iterations);
    const std::vector<Generated> found = unmask(model, texts, unmask_options_of(iterations));
    REQUIRE(found.size() == 3);
    for (std::size_t p = 0; p < 3; ++p) {
      const Index first = texts[p].places.front();
      double sum = 0;
      const auto ids = by_confidence(texts[p].sentence.ids, first, first + 7, steps, sum);
      CHECK(found[p].id == texts[p].id);
      CHECK(found[p].ids == std::vector<TokenId>(ids.begin() + first, ids.end() - 1));
      CHECK(found[p].log_probability == doctest::Approx(sum).epsilon(1e-12));
      CHECK(std::ranges::find(found[p].ids, kBlank) == found[p].ids.end());
    }
  }
  // A step for each that counts, all texts in one run.
  model.runs = 0;
  unmask(model, texts, unmask_options_of(3));
  CHECK(model.runs == 3);
  model.runs = 0;
  unmask(model, texts, unmask_options_of(100));
  CHECK(model.runs == 7);
}

TEST_CASE("orders and times against the loops of LLaDA and Dream over other models") {
  const std::string data = MASQUE_TEST_DATA;
  const std::string path = data + "/evaluate/unmask.json";
  const std::map<std::string, UnmaskOrder> orders{{"confidence", UnmaskOrder::kConfidence},
                                                  {"margin", UnmaskOrder::kMargin},
                                                  {"entropy", UnmaskOrder::kEntropy}};
  const auto ids_in = [](const JsonValue& list) {
    std::vector<TokenId> out;
    for (const JsonValue& item : list.items) out.push_back(static_cast<TokenId>(*item.number()));
    return out;
  };
  const JsonValue root = parse_json_file(read_text(path, 1 << 20), path);
  std::string opened;
  std::unique_ptr<model::Model> model;
  int compared = 0;
  for (const JsonValue& one : root.items) {
    if (const std::string name = one.text_of("model"); name != opened) {
      opened = name;
      model = model::open_model(data + "/model/" + name, {.precision = kernel::Precision::kF64});
    }
    CAPTURE(opened);
    MaskedText text;
    text.sentence.ids = ids_in(*one.find("ids"));
    for (const TokenId place : ids_in(*one.find("places"))) text.places.push_back(place);
    for (const JsonValue& expected : one.find("found")->items) {
      const auto number = [&](const char* name) { return *expected.find(name)->number(); };
      UnmaskOptions options = unmask_options_of(static_cast<Index>(number("iterations")),
                                                static_cast<Index>(number("block_size")));
      options.order = orders.at(expected.text_of("order"));
      options.times = named_value("times", expected.text_of("times"), unmask_times_names());
      CAPTURE(expected.text_of("order"));
      CAPTURE(expected.text_of("times"));
      CAPTURE(options.iterations);
      CAPTURE(options.block_size);
      const Generated found = unmask(*model, {&text, 1}, options)[0];
      CHECK(found.ids == ids_in(*expected.find("new")));
      CHECK(found.log_probability == doctest::Approx(number("score")).epsilon(1e-7));
      ++compared;
    }
  }
  CHECK(compared > 500);
}

TEST_CASE("order_temperature: places are drawn by the softmax of what ranks them") {
  const FakeModel model(HeadKind::kMasked);
  const MaskedText text = blank_text(0, {2, 5, 7}, 3);
  std::vector<double> top, margin, entropy;
  for (Index place = 3; place < 6; ++place) {
    std::vector<double> p = fake_at(text.sentence.ids, place);
    double minus_entropy = 0;
    for (double& x : p) {
      if (x != kNever) minus_entropy += x * std::exp(x);
      x = std::exp(x);
    }
    std::ranges::sort(p, std::greater<>());
    top.push_back(p[0]);
    margin.push_back(p[0] - p[1]);
    entropy.push_back(minus_entropy);
  }
  UnmaskOptions options = unmask_options_of(3);
  options.num_return_sequences = 6000;
  for (const auto& [order, ranks] : {std::pair(UnmaskOrder::kConfidence, top),
                                     {UnmaskOrder::kMargin, margin},
                                     {UnmaskOrder::kEntropy, entropy}}) {
    options.order = order;
    options.order_temperature = 0.2;
    // Which place came first: the log-probabilities of the texts tell the orders apart, as all
    // tokens are the most probable ones.
    std::array<double, 3> of_place{}, weights{};
    std::map<std::int64_t, std::size_t> first_of;
    for (std::size_t first = 0; first < 3; ++first) {
      weights[first] = std::exp(ranks[first] / 0.2);
      std::array<std::size_t, 3> others{first, (first + 1) % 3, (first + 2) % 3};
      for (int swapped = 0; swapped < 2; ++swapped) {
        std::swap(others[1], others[2]);
        std::vector<TokenId> ids = text.sentence.ids;
        double sum = 0;
        for (const std::size_t place : others) {
          const auto p = fake_at(ids, static_cast<Index>(3 + place));
          const auto best = std::ranges::max_element(p);
          ids[3 + place] = static_cast<TokenId>(best - p.begin());
          sum += *best;
        }
        CHECK(first_of.emplace(std::llround(sum * 1e9), first).second);
      }
    }
    for (const Generated& g : unmask(model, {&text, 1}, options))
      ++of_place[first_of.at(std::llround(g.log_probability * 1e9))];
    const double whole = weights[0] + weights[1] + weights[2];
    double chi = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double expected = 6000 * weights[i] / whole;
      chi += (of_place[i] - expected) * (of_place[i] - expected) / expected;
    }
    CHECK(chi < 13.8);  // 0.999 at 2 degrees of freedom

    // Nearly without a temperature: the order without draws.
    options.order_temperature = 1e-6;
    const std::vector<Generated> cold = unmask(model, {&text, 1}, options);
    options.order_temperature = 0;
    const std::vector<Generated> usual = unmask(model, {&text, 1}, options);
    CHECK(cold.front().ids == usual.front().ids);
    CHECK(cold.front().log_probability == usual.front().log_probability);
  }
}

TEST_CASE("shuffled: as many at every step, at places that the seed decides") {
  const FakeModel model(HeadKind::kMasked);
  const std::vector<MaskedText> texts = blank_texts(7);
  UnmaskOptions options = unmask_options_of(3);
  options.order = UnmaskOrder::kShuffled;
  options.num_return_sequences = 40;
  model.runs = 0;
  const std::vector<Generated> found = unmask(model, texts, options);
  CHECK(model.runs == 3);
  REQUIRE(found.size() == 120);
  std::set<std::vector<TokenId>> different;
  for (const Generated& one : found) {
    CHECK(std::ranges::find(one.ids, kBlank) == one.ids.end());
    if (one.id == 0) different.insert(one.ids);
  }
  CHECK(different.size() > 5);
  CHECK(unmask(model, texts, options)[7].ids == found[7].ids);
  // All at once there is nothing to shuffle.
  UnmaskOptions once = unmask_options_of(1);
  const std::vector<Generated> all = unmask(model, texts, once);
  once.order = UnmaskOrder::kShuffled;
  CHECK(unmask(model, texts, once)[0].ids == all[0].ids);
}

TEST_CASE("blocks of new tokens: one is finished before the next begins") {
  const FakeModel model(HeadKind::kMasked);
  const MaskedText text = blank_text(0, {2, 5, 7}, 7);
  const Generated found = unmask(model, {&text, 1}, unmask_options_of(2, 3))[0];
  std::vector<TokenId> ids = text.sentence.ids;
  double sum = 0;
  ids = by_confidence(ids, 3, 6, {2, 1}, sum);
  ids = by_confidence(ids, 6, 9, {2, 1}, sum);
  ids = by_confidence(ids, 9, 10, {1}, sum);
  CHECK(found.ids == std::vector<TokenId>(ids.begin() + 3, ids.end() - 1));
  CHECK(found.log_probability == doctest::Approx(sum).epsilon(1e-12));
}

TEST_CASE("random: the first token is drawn from the softmax, places are uniform over the steps") {
  const FakeModel model(HeadKind::kMasked);
  const MaskedText one = blank_text(0, {2, 5, 7}, 1);
  UnmaskOptions options = unmask_options_of(5);
  options.order = UnmaskOrder::kRandom;
  options.sampling.do_sample = true;
  options.num_return_sequences = 6000;
  options.seed = 3;
  const auto p = fake_at({2, 5, 7, kBlank, 3}, 3);
  std::vector<double> counts(12);
  for (const Generated& g : unmask(model, {&one, 1}, options))
    ++counts[static_cast<std::size_t>(g.ids[0])];
  double chi = 0;
  for (std::size_t v = 0; v < 12; ++v) {
    const double expected = 6000 * std::exp(p[v]);
    if (expected > 0) chi += (counts[v] - expected) * (counts[v] - expected) / expected;
  }
  CHECK(chi < 29.6);  // 0.999 at 10 degrees of freedom
  CHECK(counts[kBlank] == 0);

  // With one token a step at most the runs are the steps at which some token comes: with 2 tokens
  // and 4 steps a text has 2 runs with probability 3/4.
  options.iterations = 4;
  options.num_return_sequences = 1;
  Index runs = 0;
  for (std::uint64_t id = 0; id < 2000; ++id) {
    const MaskedText two = blank_text(id, {2, 5}, 2);
    model.runs = 0;
    unmask(model, {&two, 1}, options);
    runs += model.runs;
  }
  CHECK(static_cast<double>(runs) / 2000 == doctest::Approx(1.75).epsilon(0.03));
}

TEST_CASE("texts are functions of seed, line and sample, however they run together") {
  const FakeModel model(HeadKind::kMasked);
  const std::vector<MaskedText> texts = blank_texts(6);
  for (const UnmaskOrder order : {UnmaskOrder::kConfidence, UnmaskOrder::kRandom}) {
    UnmaskOptions options = unmask_options_of(4);
    options.order = order;
    options.sampling.do_sample = true;
    options.num_return_sequences = 2;
    const std::vector<Generated> together = unmask(model, texts, options);
    for (std::size_t p = 0; p < texts.size(); ++p) {
      options.batch_tokens = 1;
      const std::vector<Generated> alone = unmask(model, {&texts[p], 1}, options);
      for (std::size_t k = 0; k < 2; ++k) {
        CHECK(alone[k].ids == together[2 * p + k].ids);
        CHECK(alone[k].log_probability == together[2 * p + k].log_probability);
      }
      CHECK(alone[0].ids != alone[1].ids);
    }
    options.seed = 1;
    CHECK(unmask(model, texts, options)[0].ids != together[0].ids);
  }
}

/// The model without the memory for keys and values.
class BlockModel final : public model::Model {
 public:
  BlockModel(const model::Model& model, Index block) : model_(model), design_(model.design()) {
    design_.variants.masks =
        mask::parse_open_mask_layers("causal_blocks(" + std::to_string(block) + ")");
  }
  const model::Design& design() const override { return design_; }
  kernel::Precision precision() const override { return model_.precision(); }
  const std::vector<std::string>& unused() const override { return model_.unused(); }
  std::vector<double> run(const model::Batch& batch, const model::Request& request,
                          model::Observer* observer) const override {
    tokens += std::ssize(batch.ids);
    return model_.run(batch, request, observer);
  }
  std::unique_ptr<model::KeyValueCache> make_cache(Index sequences, bool own) const override {
    return keeps ? model_.make_cache(sequences, own) : nullptr;
  }

  bool keeps = false;
  mutable Index tokens = 0;

 private:
  const model::Model& model_;
  model::Design design_;
};

TEST_CASE("as a way of masked models") {
  const FakeModel model(HeadKind::kMasked);
  const std::vector<MaskedText> texts = blank_texts(6);
  for (const UnmaskOrder order : {UnmaskOrder::kConfidence, UnmaskOrder::kRandom}) {
    UnmaskOptions options = unmask_options_of(4, 5);
    options.order = order;
    options.sampling.do_sample = true;
    options.num_return_sequences = 2;
    options.seed = 7;
    MaskedGenerateOptions way;
    way.how = order == UnmaskOrder::kRandom ? MaskedWay::kRandom : MaskedWay::kConfidence;
    way.sampling = options.sampling;
    way.num_return_sequences = 2;
    way.seed = 7;
    way.unmask_iterations = 4;
    way.block_size = 5;
    way.writer.never = {kBlank};
    const std::vector<Generated> expected = unmask(model, texts, options);
    const std::vector<Generated> found = generate_masked(model, texts, way);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].ids == expected[i].ids);
      CHECK(found[i].score == expected[i].log_probability);
    }
  }
}

TEST_CASE("a model of block diffusion: kept keys and values change no token, and save most rows") {
  for (const Index block : {1, 3, 4, 50}) {
    CAPTURE(block);
    model::ModelOptions open;
    open.precision = kernel::Precision::kF64;
    open.masks = mask::parse_mask_layers("causal_blocks(" + std::to_string(block) + ")");
    const auto loaded = model::open_model(std::string(MASQUE_TEST_DATA) + "/model/bert", open);
    BlockModel model(*loaded, block);
    std::vector<MaskedText> texts = blank_texts(9);
    texts.push_back(blank_text(2, {2, 9, 8, 8, 6, 11}, 8));
    // Masks here and there, and a second segment.
    MaskedText gaps = blank_text(4, {2, 9, kBlank, 8, 6, 11, 12, kBlank, 7}, 2);
    gaps.places.insert(gaps.places.begin(), {2, 7});
    gaps.sentence.segments.assign(gaps.sentence.ids.size(), 1);
    texts.push_back(gaps);
    for (const UnmaskOrder order : {UnmaskOrder::kConfidence, UnmaskOrder::kRandom}) {
      for (const bool sample : {false, true}) {
        UnmaskOptions options = unmask_options_of(3);
        options.order = order;
        options.sampling.do_sample = sample;
        options.num_return_sequences = 2;
        model.keeps = false;
        model.tokens = 0;
        const std::vector<Generated> whole = unmask(model, texts, options);
        const Index all = model.tokens;
        model.keeps = true;
        model.tokens = 0;
        const std::vector<Generated> kept = unmask(model, texts, options);
        REQUIRE(whole.size() == kept.size());
        for (std::size_t i = 0; i < whole.size(); ++i) {
          CHECK(kept[i].ids == whole[i].ids);
          CHECK(kept[i].log_probability ==
                doctest::Approx(whole[i].log_probability).epsilon(1e-10));
        }
        if (block < 50) CHECK(model.tokens < all * 3 / 4);
      }
    }
  }
}

TEST_CASE("a model that writes in blocks takes no others") {
  FakeModel blocks(HeadKind::kMasked);
  blocks.design_to_change().variants.masks = mask::parse_open_mask_layers("causal_blocks(4)");
  CHECK_NOTHROW(check_unmasking(blocks.design(), {}));
  CHECK(contains(
      message_of<UsageError>([&] { check_unmasking(blocks.design(), unmask_options_of(1, 2)); }),
      "the model writes in blocks of 4; remove the option"));
}

}  // namespace
}  // namespace masque::evaluate
