// The design of a checkpoint that training starts from, as an objective needs it.
#pragma once

#include <functional>

#include "model/checkpoint/starting_model.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// A checkpoint's design with one stream that reads everything: the objective says which token
/// reads which, whatever the model was trained for.
model::Design starting_design(const model::StartingModel& start);

/// Lets `adapt`, an objective's, say what the design must be. Objectives describe the head of a new
/// model: this one keeps its own or gets that of its family, where there is one of the kind.
void adapt_starting_design(const model::StartingModel& start,
                           const std::function<void(model::Design&)>& adapt, model::Design& design);

/// A checkpoint's weights for a design of it. A discriminator has nothing of a vocabulary's head,
/// nor the other way round: then those of the head are left out.
model::ModelWeights<float> starting_weights(const model::StartingModel& start,
                                            const model::Design& design);

/// The recipe of a second network next to one of this design: a plain transformer of its sizes, for
/// scaled_recipe. Positions are its own where recipes know them, else learned ones; the normalizer
/// is its own but for gated units. `longest` positions where the design has no limit.
DesignRecipe recipe_beside(const model::Design& design, Index longest);

}  // namespace masque::train
