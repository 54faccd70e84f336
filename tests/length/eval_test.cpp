// Checkpoints at other lengths: treatments, what is scored, and what is refused.
#include "length/eval.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "length/length_bench.hpp"

namespace masque::length {
using namespace train;
namespace {

using test::Bench;
using test::kCausal;
using test::kLearned;
using test::kRotary;
using test::kTta;

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
  for (const auto& pair : {std::pair<std::string, std::string>{"mlm", kRotary},
                           {"mlm", kLearned},
                           {"tta", kLearned + kTta},
                           {"clm", kLearned + kCausal}}) {
    const auto& objective = pair.first;
    const auto& members = pair.second;
    CAPTURE(objective);
    const model::TreatableModel& model = bench.model(members);
    CHECK(length_objective(model) == objective);
    const std::vector<Index> lengths{8, 12};
    const LengthStream stream = bench.stream(bench.request(objective, lengths));
    TreatmentGrid grid = bench.grid(model, {}, lengths);
    const auto scores = score_lengths(grid, stream, objective);
    REQUIRE(scores.size() == 2);
    for (const LengthScore& score : scores) {
      CHECK(score.loss.values ==
            doctest::Approx(plain_loss(model, stream, score.cell.length)).epsilon(1e-12));
      CHECK(score.loss.counts == static_cast<double>(stream.positions(8).size()));
      CHECK(score.accuracy.mean() <= 1);
      CHECK(score.loss.standard_error() > 0);
    }
    CHECK(scores[0].loss.values != scores[1].loss.values);
    // Batches change nothing.
    grid.batch_tokens = 1;
    const auto again = score_lengths(grid, stream, objective);
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
        score_lengths(bench.grid(model, {.normalizers = "own,log_n"}, lengths), stream, objective);
    REQUIRE(log_n.size() == 6);
    for (std::size_t i = 0; i < 2; ++i) CHECK(log_n[i].loss.values == log_n[i + 3].loss.values);
    CHECK(log_n[2].loss.values != log_n[5].loss.values);
    // The own mask goes first.
    const auto windows =
        score_lengths(bench.grid(model, {.windows = "12,2"}, lengths), stream, objective);
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
  const auto window = score_lengths(bench.grid(model, {.windows = "3"}, lengths), stream, "mlm");
  const auto mask =
      score_lengths(bench.grid(model, {.masks = "own; window(2)"}, lengths), stream, "mlm");
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
  CHECK_THROWS_AS(score_lengths(bench.grid(causal, {.masks = "own;full"}, {8}), stream, "clm"),
                  UsageError);
  CHECK_THROWS_AS(score_lengths(bench.grid(causal, {.positions = "own,ntk"}, {8}), stream, "clm"),
                  UsageError);
  CHECK_THROWS_AS(score_lengths(bench.grid(causal, {.masks = "3*causal"}, {8}), stream, "clm"),
                  UsageError);
  // A table that ends is reported, and the rest is scored.
  const auto scores =
      score_lengths(bench.grid(causal, {.positions = "own,interpolated"}, lengths), stream, "clm");
  REQUIRE(scores.size() == 3);
  CHECK(scores[0].cell.length == 8);
  CHECK(scores[1].cell.treatment == 1);
  CHECK(bench.notes == std::vector<std::string>{"own: at most 12 positions; length 30 skipped"});
  CHECK_THROWS_AS(score_lengths(bench.grid(causal, {}, {30}), stream, "clm"), UsageError);
}

}  // namespace
}  // namespace masque::length
