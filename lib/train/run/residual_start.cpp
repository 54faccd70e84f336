#include "train/run/residual_start.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"

namespace masque::train {

void start_residuals(const Objective& objective, const Corpus& corpus, Index sequences,
                     const ParameterMap& map, Network<float>& network,
                     Parameters<float>& parameters) {
  using model::Role;
  const model::Design& design = network.design();
  if (design.norm_placement != model::NormPlacement::kAdmin) return;
  if (design.streams == model::Streams::kTowers)
    throw UsageError("norm_placement admin does not support two towers");
  objective.check(corpus);
  std::vector<LayerMagnitudes> layers;
  RunOutputs<float> outputs;
  outputs.layers = &layers;
  network.prepare();
  network.evaluate(first_examples(objective, corpus, sequences), outputs);
  double sum = 1;
  const auto start = [&](Role role, std::size_t layer, double squares) {
    const Index weights = design.layers[layer].weights;
    std::ranges::fill(parameters.value(map.weight(role, weights)).row_span(0),
                      static_cast<float>(std::sqrt(sum)));
    if (layers[layer].numbers > 0) sum += squares / layers[layer].numbers;
  };
  for (std::size_t l = 0; l < layers.size(); ++l) {
    start(Role::kAttentionResidual, l, layers[l].attention_branch);
    start(Role::kFeedForwardResidual, l, layers[l].feed_forward_branch);
  }
}

}  // namespace masque::train
