// Training starts from checkpoints of any family: its first loss is what the model says.
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "model/checkpoint/starting_model.hpp"
#include "model/model.hpp"
#include "support/model_cases.hpp"
#include "support/near.hpp"
#include "train/loss/electra_loss.hpp"
#include "train/loss/mae_loss.hpp"
#include "train/loss/step_loss.hpp"
#include "train/network/network.hpp"
#include "train/run/starting_design.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

/// The line with every token a target of the row before.
Example example_of_line(const ModelLine& line) {
  Example example;
  example.ids = line.ids;
  example.positions = line.positions;
  example.segments = line.segments;
  for (Index i = 0; i < example.size(); ++i) {
    example.rows.push_back(i);
    example.targets.push_back(line.ids[static_cast<std::size_t>((i + 1) % example.size())]);
  }
  return example;
}

/// Losses of the rows as inference has them.
std::vector<double> losses_of(const model::Model& model, const Example& example) {
  model::Batch batch;
  batch.add(
      example.ids,
      {.positions = example.positions, .segments = example.segments, .mask = {}, .query_mask = {}});
  model::Request request;
  request.all_rows = true;
  request.targets = example.targets;
  std::vector<double> losses = model.run(batch, request);
  for (double& loss : losses) loss = -loss;
  return losses;
}

bool predicts_words(const model::Design& design) {
  const model::HeadKind kind = design.head.kind;
  return kind == model::HeadKind::kMasked || kind == model::HeadKind::kCausal;
}

}  // namespace

TEST_CASE("the first loss of training is that of the checkpoint, family by family") {
  std::set<std::string> trained;
  for (const ModelCase& one : model_cases()) {
    if (one.name == "tta_over_bert") continue;
    CAPTURE(one.name);
    const model::StartingModel start(one.folder);
    model::Design design = start.design();
    // What T-TA's queries start from; its config.json leaves it to the tokenizer.
    if (design.streams == model::Streams::kFixedKeys) design.mask_token_id = 1;
    // Its lines are read by one stream.
    if (design.streams == model::Streams::kTwo) design.streams = model::Streams::kOne;
    if (!predicts_words(design)) continue;
    const model::ModelPlan plan = start.saved_design(design).plan;
    Parameters<float> parameters;
    const ParameterMap map =
        add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    CHECK(copy_weights(start.weights(), map, parameters).empty());
    Network<float> network(design, map, parameters, kernel::Precision::kF32);
    trained.insert(design.family);
    network.prepare();
    const auto model = model::open_model(one.folder, {.mask_token_id = design.mask_token_id});
    std::size_t lines = 0;
    for (const ModelLine& line : one.lines) {
      if (!line.mask.empty() || line.ids.size() < 2) continue;
      ++lines;
      const Example example = example_of_line(line);
      std::vector<double> losses;
      RunOutputs<float> outputs;
      outputs.losses = &losses;
      network.evaluate({&example, 1}, outputs);
      const std::vector<double> expected = losses_of(*model, example);
      CHECK(far_off(losses, expected, 1e-5, 1e-5) == "");
    }
    CHECK((lines > 0 || one.name == "xlnet_two_streams"));
  }
  // All that have a head: T5's encoder has none.
  CHECK(trained.size() == 42);
}

TEST_CASE("a second network has the sizes of any model, and shares its tables where they fit") {
  ObjectiveOptions requested;
  requested.tokens.mask = 4;
  std::set<std::string> shared;
  for (const ModelCase& one : model_cases()) {
    CAPTURE(one.name);
    const model::StartingModel start(one.folder);
    model::Design design = starting_design(start);
    requested.tokens.size = static_cast<TokenId>(design.vocab_size);
    CHECK(design.streams == model::Streams::kOne);
    CHECK(design.mask == model::DefaultMask::kFull);
    const DesignRecipe recipe = recipe_beside(design, 30);
    const model::Design generator =
        generator_design(*find_electra("electra"), recipe, 0.5, requested, design);
    CHECK(generator.vocab_size == design.vocab_size);
    CHECK(generator.hidden_size == design.hidden_size / 2);
    CHECK(generator.num_hidden_layers == design.num_hidden_layers);
    CHECK(generator.layer_kind == model::LayerKind::kTransformer);
    CHECK(generator.max_position_embeddings ==
          (design.max_position_embeddings > 0 ? design.max_position_embeddings : 30));
    CHECK(shares_table(model::Role::kWordTable, design, generator));
    const ElectraVariant& variant = *find_electra("electra");
    adapt_starting_design(
        start, [&](model::Design& own) { adapt_electra(variant, requested, own); }, design);
    CHECK(design.head.kind == model::HeadKind::kDiscriminator);
    ElectraModel both{.variant = &variant, .generator = generator, .second = design};
    both.second_plan = start.saved_design(design).plan;
    Parameters<float> parameters;
    add_electra(both, true, parameters);
    CHECK(both.generator_map.weight(model::Role::kWordTable) ==
          both.second_map.weight(model::Role::kWordTable));
    const Index places = both.second_map.weight(model::Role::kPositionTable);
    if (places != ParameterMap::kNone &&
        both.generator_map.weight(model::Role::kPositionTable) == places)
      shared.insert(design.family);
    // What is new of it is the head at most.
    const auto names = copy_weights(starting_weights(start, design), both.second_map, parameters);
    CHECK(names.size() == (one.name == "electra_discriminator" ? 0 : design.use_bias ? 4 : 2));
  }
  CHECK(shared.contains("bert"));
  // Its rows are other places.
  CHECK_FALSE(shared.contains("roberta"));
}

TEST_CASE("a decoder next to narrow tables has tables of its own") {
  const model::StartingModel start(MASQUE_TEST_DATA "/model/electra_discriminator");
  MaeModel mae;
  mae.encoder = starting_design(start);
  ObjectiveOptions requested;
  requested.tokens.size = 20;
  requested.tokens.mask = 4;
  adapt_starting_design(
      start, [&](model::Design& own) { adapt_mae(requested, own); }, mae.encoder);
  CHECK(mae.encoder.head == model::HeadDesign());
  mae.encoder_plan = start.saved_design(mae.encoder).plan;
  mae.decoder =
      decoder_design(decoder_recipe(recipe_beside(mae.encoder, 8), 0.5, 1), requested, mae.encoder);
  CHECK(mae.decoder.embedding_size == mae.encoder.hidden_size);
  Parameters<float> parameters;
  add_mae(mae, parameters);
  for (const model::Role role : kSharedTables)
    CHECK(mae.decoder_map.weight(role) != mae.encoder_map.weight(role));
}

}  // namespace masque::test
