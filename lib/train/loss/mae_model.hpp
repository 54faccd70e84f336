// Masked autoencoding with a decoder: the encoder reads the kept tokens alone; a small decoder gets
// its states and [MASK] in the places of the hidden ones. He et al. 2021, arXiv:2111.06377; for
// text https://kexue.fm/archives/8770.
#pragma once

#include "model/checkpoint/placed.hpp"
#include "train/data/objective.hpp"
#include "train/network/parameters.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// As on the command line. It is no Objective, since there are two networks.
inline constexpr std::string_view kMae = "mae";

/// Sets what the objective decides of the encoder's design, as Objective::adapt: no head. Throws
/// UsageError too for a mixer or a convolution, which would mix the positions that are left.
void adapt_mae(const ObjectiveOptions& requested, model::Design& encoder);

/// The recipe of the decoder of an encoder made by `recipe`: scaled_recipe with its own layers.
DesignRecipe decoder_recipe(const DesignRecipe& recipe, double size, Index layers);

/// The design of that recipe. It reads the encoder's states as its embeddings, so that these have
/// the encoder's width; a projection follows where its own states are narrower. Throws as
/// design_of.
model::Design decoder_design(const DesignRecipe& own, const ObjectiveOptions& requested,
                             const model::Design& encoder);

/// Both, in one set of parameters.
struct MaeModel {
  model::Design encoder, decoder;
  ParameterMap encoder_map, decoder_map;
  /// The names of the encoder's tensors in files; none: those of model::plan_of.
  std::optional<model::ModelPlan> encoder_plan;
};

/// Adds the parameters of both networks, those of the decoder with names that begin with
/// "decoder.". Tables of words, positions and segments are those of the encoder, where they fit
/// (shared_tables.hpp).
template <class T>
void add_mae(MaeModel& model, Parameters<T>& parameters);

/// What both get for a sequence.
struct MaeExamples {
  Example encoder;           ///< the kept tokens at their positions; every row is wanted
  Example decoder;           ///< all positions; rows and targets are the hidden ones
  std::vector<Index> given;  ///< rows of the decoder that get the encoder's states, in order
};

/// From an example of the objective mae-mask, whose rows are the hidden tokens.
MaeExamples mae_examples(const Example& hidden);

}  // namespace masque::train
