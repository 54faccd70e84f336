// Masked diffusion as an objective: examples, their weights, and the loss that is learnt.
#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "complex_step.hpp"
#include "model/checkpoint/save.hpp"
#include "model/family.hpp"
#include "model/masks.hpp"
#include "records/mdlm.hpp"
#include "support/message.hpp"
#include "train/data/order.hpp"
#include "train/network/network.hpp"
#include "train/network/recipe.hpp"
#include "train/run/mask_check.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

using test::contains;
using test::kMaskToken;
using test::make_objective;
using test::message_of;
using test::objective_options;
using test::Sequence;

ObjectiveOptions mdlm_of(std::uint64_t batch_size, std::uint64_t block_size) {
  ObjectiveOptions options = objective_options();
  options.mdlm.batch_size = batch_size;
  options.mdlm.block_size = block_size;
  return options;
}

TEST_CASE("a first row without a row before it has no loss under a shifted head") {
  Example example;
  example.ids = {4, 4, 7};
  example.rows = {0, 1};
  example.targets = {5, 6};
  example.weights = {2, 3};
  leave_out_first_row(example);
  CHECK(example.rows == std::vector<Index>{1});
  CHECK(example.targets == std::vector<TokenId>{6});
  CHECK(example.weights == std::vector<double>{3});
  leave_out_first_row(example);
  CHECK(example.rows == std::vector<Index>{1});
}

TEST_CASE("what droptoken shows with the number of sequences is what training takes") {
  constexpr Index kSequences = 20;
  const EpochOrder order(kSequences, 1);
  for (const std::uint64_t block_size : {0U, 5U}) {
    const auto objective = make_objective("mdlm", mdlm_of(8, block_size));
    const auto corruption = records::make_mdlm(
        {.batch_size = 8, .block_size = block_size, .seed = 1}, test::token_table());
    // Five updates of 8 are two epochs of 20.
    std::map<std::uint64_t, std::set<double>> rates;
    for (std::uint64_t n = 0; n < 40; ++n) {
      const EpochOrder::Cursor cursor = order.at(n);
      const Sequence sequence(static_cast<std::uint64_t>(cursor.item), 60);
      CorpusItem item = sequence.item();
      item.place = n;
      const Example example = objective->example(item, cursor.epoch);
      records::Record record;
      record.number = item.number;
      record.epoch = cursor.epoch;
      record.ids = sequence.ids;
      record.place = order.place(cursor);
      records::Scratch scratch;
      records::Tally tally;
      corruption->apply(record, scratch, tally);
      CHECK(example.ids == record.ids);
      std::size_t next = 0;
      for (std::size_t i = 0; i < record.size(); ++i) {
        if (record.labels.values[i] == records::kNoLabel) continue;
        REQUIRE(next < example.rows.size());
        CHECK(example.rows[next] == static_cast<Index>(i));
        CHECK(example.targets[next] == record.labels.values[i]);
        CHECK(example.weights[next] == record.weights[i]);
        ++next;
      }
      CHECK(next == example.rows.size());
      CHECK(*example.divisor == 58);
      if (!example.weights.empty()) rates[n / 8].insert(1 / example.weights.front());
    }
    if (block_size > 0) continue;
    // The rates of an update are an eighth apart.
    for (const auto& [step, batch] : rates) {
      for (auto rate = batch.begin(); std::next(rate) != batch.end(); ++rate) {
        const double eighths = (*std::next(rate) - *rate) / (0.999 / 8);
        CHECK(eighths == doctest::Approx(std::round(eighths)).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("blocks: both halves at the same positions, under the mask of block diffusion") {
  const auto objective = make_objective("mdlm", mdlm_of(8, 4));
  const Sequence sequence(3, 18);
  const Example example = objective->example(sequence.item(), 0);
  REQUIRE(example.size() == 36);
  CHECK(test::bits_of(example.mask, 36) == test::bits_of("block_diffusion(4)", 36));
  for (Index i = 0; i < 36; ++i) CHECK(example.positions[static_cast<std::size_t>(i)] == i % 18);
  for (const Index row : example.rows) {
    CHECK(row < 18);
    CHECK(example.ids[static_cast<std::size_t>(row)] == kMaskToken);
  }
  CHECK(example.sparse);
  CHECK_FALSE(objective->takes_masks());
  CHECK(objective->target_offset(36) == 18);
  CHECK_FALSE(make_objective("mdlm")->target_offset(36));
}

TEST_CASE("the design of block diffusion reads in blocks, and nothing else will do") {
  const auto objective = make_objective("mdlm", mdlm_of(8, 4));
  model::Design design;
  objective->adapt(design);
  CHECK(layers_text(design.variants.masks) == "causal_blocks(4)");
  CHECK(model::causal_block_size(design) == 4);
  const model::Design before = design;
  objective->adapt(design);
  CHECK(design == before);
  model::Design other;
  other.variants.masks = mask::parse_open_mask_layers("causal_blocks(5)");
  CHECK(contains(message_of<UsageError>([&] { objective->adapt(other); }),
                 "expected causal_blocks(4)"));
  model::Design plain;
  make_objective("mdlm")->adapt(plain);
  CHECK(plain.variants.masks.empty());
  CHECK_FALSE(model::causal_block_size(plain));
}

struct Built {
  model::Design design;
  Parameters<double> parameters;
  ParameterMap map;
};

Built small_network(const Objective& objective, const std::string& position) {
  Built built;
  DesignRecipe recipe;
  recipe.vocab_size = 1000;
  recipe.hidden_size = 8;
  recipe.num_attention_heads = 2;
  recipe.num_hidden_layers = 2;
  recipe.intermediate_size = 12;
  recipe.max_position_embeddings = 16;
  recipe.position = position;
  built.design = design_of(recipe);
  objective.adapt(built.design);
  const model::ModelPlan plan = model::saved_design(built.design).plan;
  built.map = add_model(plan, model::head_like(plan, built.design.head), "", ParameterMap(),
                        built.parameters);
  initialize_parameters(built.design, built.map, {.seed = 3, .initializer_range = 0.4},
                        built.parameters);
  return built;
}

TEST_CASE("gradients without the mask token are those of complex steps") {
  for (const std::uint64_t block_size : {0U, 4U}) {
    CAPTURE(block_size);
    const auto objective = make_objective("mdlm", mdlm_of(4, block_size));
    Built built = small_network(*objective, "rope");
    std::vector<Example> examples;
    for (std::uint64_t i = 0; i < 4; ++i)
      examples.push_back(objective->example(Sequence(i, 12 + i).item(), 0));
    Network<double> network(built.design, built.map, built.parameters, kernel::Precision::kF64);
    network.exclude(*objective->never_predicted());
    network.prepare();
    network.train(examples, 1 / total_weight(examples), {});
    const double scale = 1 / total_weight(examples);
    const auto loss = [&](Parameters<test::Complex>& moved) {
      Encoder<test::Complex> encoder(built.design, built.map, moved, kernel::Precision::kF64);
      Head<test::Complex> head(built.design, built.map, moved, kernel::Precision::kF64);
      head.exclude(*objective->never_predicted());
      encoder.prepare();
      head.prepare();
      ExampleChunk chunk;
      for (const Example& e : examples) chunk.add(e);
      std::vector<double> weights = chunk.weights;
      for (double& w : weights) w *= scale;
      Tape<test::Complex> tape;
      Matrix<test::Complex> last(static_cast<Index>(chunk.wanted.size()), 8);
      encoder.forward(chunk, {}, tape, last.view());
      return head.run({last.view(), chunk.targets, weights}, {}).loss;
    };
    test::check_gradients(built.parameters, loss, [](const Parameter&) { return true; });
  }
}

TEST_CASE("the loss is a sum over masks divided by all tokens, and the mask token has no part") {
  const auto objective = make_objective("mdlm", mdlm_of(4, 0));
  Built built = small_network(*objective, "learned");
  std::vector<Example> examples;
  double tokens = 0;
  for (std::uint64_t i = 0; i < 6; ++i) {
    examples.push_back(objective->example(Sequence(i, 10).item(), 0));
    tokens += 8;
  }
  Network<double> network(built.design, built.map, built.parameters, kernel::Precision::kF64);
  network.exclude(kMaskToken);
  network.prepare();
  std::vector<double> losses;
  RunOutputs<double> outputs;
  outputs.losses = &losses;
  const LossReport report = network.evaluate(examples, outputs);
  CHECK(report.weight == tokens);
  CHECK(total_weight(examples) == tokens);
  double sum = 0;
  std::size_t row = 0;
  for (const Example& e : examples) {
    for (const double weight : e.weights) sum += weight * losses[row++];
  }
  CHECK(report.mean() == doctest::Approx(sum / tokens).epsilon(1e-12));
  // Whatever the mask token's row of the output says.
  const auto bias = built.parameters.value(built.map.bias(model::Role::kDecoder));
  bias.at(0, kMaskToken) = 50;
  network.prepare();
  CHECK(network.evaluate(examples).mean() == doctest::Approx(report.mean()).epsilon(1e-12));
  // Smaller chunks have the same divisor, with and without rows.
  network.chunk_rows = 10;
  const LossReport apart = network.evaluate(examples);
  CHECK(apart.weight == tokens);
  CHECK(apart.mean() == doctest::Approx(report.mean()).epsilon(1e-12));
}

TEST_CASE("a noised row whose state changed with its clean token would be found") {
  Corpus corpus;
  for (std::uint64_t i = 0; i < 6; ++i) corpus.add(Sequence(i, 12).ids);
  const auto objective = make_objective("mdlm", mdlm_of(4, 4));
  const Built built = small_network(*objective, "rope");
  CHECK_FALSE(find_read_target(built.design, *objective, corpus));
  // The same examples under a mask that is wrong.
  class Wrong final : public Objective {
   public:
    Wrong(const ObjectiveOptions& options, const Objective& right)
        : Objective(options), right_(right) {}
    void adapt(model::Design&) const override {}
    std::optional<Index> target_offset(Index size) const override { return size / 2; }

   protected:
    Example make(records::Record& record) const override {
      CorpusItem item;
      item.number = record.number;
      item.ids = record.ids;
      Example example = right_.example(item, record.epoch);
      example.mask = mask::parse_mask("full").bind({example.size(), example.size()});
      return example;
    }

   private:
    const Objective& right_;
  };
  const Wrong wrong(mdlm_of(4, 4), *objective);
  CHECK(find_read_target(built.design, wrong, corpus));
}

}  // namespace
}  // namespace masque::train
