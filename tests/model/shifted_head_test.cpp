// Heads that predict the token at a position from the state of the position before it (Dream).
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "model/checkpoint/save.hpp"
#include "model/model.hpp"
#include "model/random_model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

const std::vector<TokenId> kShiftedIds{7, 3, 22, 39, 5, 11, 7, 30, 2};

/// Last states and log-probabilities of some rows.
class RowsOfStates final : public Observer {
 public:
  void last_states(Index s, Index first, MatrixView<const double> x) override {
    for (Index i = 0; i < x.rows; ++i) {
      rows.emplace_back(x.row(i), x.row(i) + x.columns);
      sequences.push_back(s);
    }
    firsts.push_back(first);
  }
  std::vector<std::vector<double>> rows;
  std::vector<Index> sequences, firsts;
};

TEST_CASE("a shifted head reads the row before, and last states stay those of their rows") {
  const Design shifted = test::tiny_design(R"("head_shifted": true)");
  Design plain = shifted;
  plain.head.shifted = false;
  const masque::test::TempFolder folder = masque::test::TempFolder::in_memory();
  save_model(folder / "shifted", shifted, test::random_weights<float>(shifted, 5));
  save_model(folder / "plain", plain, test::random_weights<float>(plain, 5));
  const auto moved = open_model(folder / "shifted", {.precision = kernel::Precision::kF64});
  const auto still = open_model(folder / "plain", {.precision = kernel::Precision::kF64});
  CHECK(moved->make_cache(1, true) == nullptr);
  CHECK(still->make_cache(1, true) != nullptr);
  Batch batch;
  batch.add(kShiftedIds);
  batch.add(std::vector<TokenId>{1, 38, 7});
  Request request;
  request.last_states = true;
  request.rows = {0, 1, 4, 8, 9, 11};
  request.targets = {5, 6, 7, 8, 9, 10};
  RowsOfStates of_moved, of_still;
  const std::vector<double> found = moved->run(batch, request, &of_moved);
  Request before = request;
  before.rows = {0, 0, 3, 7, 9, 10};
  CHECK(found == still->run(batch, before));
  CHECK(found != still->run(batch, request, &of_still));
  CHECK(of_moved.rows == of_still.rows);
  CHECK(of_moved.sequences == of_still.sequences);
  CHECK(of_moved.firsts == of_still.firsts);
  // Without a head nothing is shifted.
  request.targets.clear();
  RowsOfStates alone;
  moved->run(batch, request, &alone);
  CHECK(alone.rows == of_still.rows);
}

TEST_CASE("what a shifted head cannot stand on is refused") {
  for (const char* members :
       {R"("streams": "fixed_keys")", R"("head": "causal")",
        R"("streams": "two", "position_embedding_type": "rotary")",
        R"("latent": {"num_hidden_layers": 1, "size": 4})", R"x("mask": "causal_blocks(2)")x",
        R"("detector": {"num_hidden_layers": 1})"}) {
    CAPTURE(members);
    const std::string message = masque::test::message_of(
        [&] { test::tiny_design(std::string(members) + R"(, "head_shifted": true)"); });
    CHECK(masque::test::contains(message, "head_shifted"));
    CHECK(masque::test::contains(message, "expected"));
  }
}

}  // namespace
}  // namespace masque::model
