// Training starts from checkpoints of any family: its first loss is what the model says.
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "model/model.hpp"
#include "model/starting_model.hpp"
#include "support/model_cases.hpp"
#include "support/near.hpp"
#include "train/network/network.hpp"

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
    const model::ModelPlan plan = start.plan(design);
    Parameters<float> parameters;
    const ParameterMap slots =
        add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    CHECK(copy_weights(start.weights(), slots, parameters).empty());
    Network<float> network(design, slots, parameters, kernel::Precision::kF32);
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
  CHECK(trained.size() == 15);
}

}  // namespace masque::test
