// The design of a checkpoint that training starts from, as an objective needs it.
#pragma once

#include <functional>
#include <optional>

#include "model/checkpoint/starting_model.hpp"
#include "text/tokenizer.hpp"
#include "train/network/network.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// Returns the design of the checkpoint `start` with one stream that reads everything: the
/// objective says which token reads which, whatever the model was trained for.
model::Design starting_design(const model::StartingModel& start);

/// Lets `adapt`, an objective's, say what `design`, a starting_design() of `start`, must be.
/// Objectives describe the head of a new model: this one keeps its own or gets that of its family,
/// where there is one of the kind. Throws as `adapt`.
void adapt_starting_design(const model::StartingModel& start,
                           const std::function<void(model::Design&)>& adapt, model::Design& design);

/// Reads the weights of the checkpoint `start` for a `design` of it; they own their memory. A
/// discriminator has nothing of a vocabulary's head, nor the other way round: then those of the
/// head are left out. Throws as load_model.
model::ModelWeights<float> starting_weights(const model::StartingModel& start,
                                            const model::Design& design);

/// Adds the parameters of a model with the `plan` that `start` writes, zeros, to `parameters`; of a
/// decoder those of the encoder that it reads, too. Returns their places; `source` ← the encoder
/// and its places, of any other model nothing. T is float or double.
template <class T>
ParameterMap add_starting_model(const model::StartingModel& start, const model::ModelPlan& plan,
                                std::optional<EncoderPart>& source, Parameters<T>& parameters);

/// Throws InputError if the template of one text of `tokenizer` has a token type beyond the table
/// of `design`: no text could be scored with what is trained. Designs without a table read any
/// type.
void check_token_types(const text::Tokenizer& tokenizer, const model::Design& design);

/// Returns the recipe of a second network next to one of `design`: a plain transformer of its
/// sizes, for scaled_recipe. Positions are those of `design` where recipes know them, else learned
/// ones; the normalizer is that of `design`, except for gated units. `longest` positions where the
/// design has no limit.
DesignRecipe recipe_beside(const model::Design& design, Index longest);

}  // namespace masque::train
