// How long the sequences were that a model was trained on, as its folder says it.
#pragma once

#include "model/weights.hpp"

namespace masque::train {

/// Makes the model of `design` and `weights` one that was trained on sequences of up to `positions`
/// tokens, at least 1: that is its max_position_embeddings, and its tables of positions (in front
/// of its layers, and of late positions) end there; `weights` must have the rows. A mixer, and a
/// scheme with a table of its own, stays as it is.
void set_trained_positions(Index positions, model::Design& design,
                           model::ModelWeights<float>& weights);

}  // namespace masque::train
