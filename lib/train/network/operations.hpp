// How much a step of training computes.
#pragma once

#include "model/design.hpp"
#include "train/network/parameters.hpp"

namespace masque::train {

/// What goes through a network in a step.
struct Work {
  double tokens = 0;  ///< of all sequences
  double length = 0;  ///< of a sequence, on average
  double rows = 0;    ///< with a loss
};

/// Returns the operations of products for `work`, forward and backward, as papers count them: 6 for
/// each weight that a token meets, 6 n for each element of the queries and of the contexts of a
/// sequence of n tokens (the full square, for masks too), and 6 for each weight of the head and row
/// with a loss. The model is of `design` at the places `map` of `parameters`. Norms, activations,
/// mixers, projections of distances, a detector and the optimizer are not counted; of two streams
/// one is. T is float.
template <class T>
double step_operations(const model::Design& design, const ParameterMap& map,
                       const Parameters<T>& parameters, const Work& work);

}  // namespace masque::train
