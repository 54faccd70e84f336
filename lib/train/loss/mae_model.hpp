// Masked autoencoding with a decoder: the encoder reads the kept tokens alone; a small decoder gets
// its states and [MASK] in the places of the hidden ones. He et al. 2021, arXiv:2111.06377; for
// text https://kexue.fm/archives/8770.
#pragma once

#include "model/checkpoint/placed.hpp"
#include "train/data/objective.hpp"
#include "train/network/parameters.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// The objective's name on the command line. It is no Objective, since there are two networks.
inline constexpr std::string_view kMae = "mae";

/// Sets what the objective decides of the design `encoder`, as Objective::adapt: no head. Of
/// `requested` the tokens and whether there are pairs are read. Throws UsageError also for a mixer
/// or a convolution, which would mix the positions that are left.
void adapt_mae(const ObjectiveOptions& requested, model::Design& encoder);

/// Returns the recipe of the decoder of an encoder made by `recipe`: scaled_recipe by `size` (more
/// than 0, at most 1) with `layers` layers. Throws UsageError for another size, and for positions
/// or normalizers that are a list by layer.
DesignRecipe decoder_recipe(const DesignRecipe& recipe, double size, Index layers);

/// Returns the design of `own`, a decoder_recipe(), next to one of design `encoder`; `requested` as
/// in adapt_mae(). It reads the encoder's states as its embeddings, so that these have the
/// encoder's width; a projection follows where its own states are narrower. Throws as design_of.
model::Design decoder_design(const DesignRecipe& own, const ObjectiveOptions& requested,
                             const model::Design& encoder);

/// Both networks, in one set of parameters.
struct MaeModel {
  model::Design encoder;     ///< of the network that is kept
  model::Design decoder;     ///< of the other one
  ParameterMap encoder_map;  ///< places of the encoder; add_mae() sets it
  ParameterMap decoder_map;  ///< places of the decoder; add_mae() sets it
  /// The names of the encoder's tensors in files; none: those of model::plan_of.
  std::optional<model::ModelPlan> encoder_plan;
};

/// Adds the parameters of both networks of `model` to `parameters`, those of the decoder with names
/// that begin with "decoder.", and sets their places in `model`. Tables of words, positions and
/// segments are those of the encoder, where they fit (shared_tables.hpp). T is float or double.
template <class T>
void add_mae(MaeModel& model, Parameters<T>& parameters);

/// What both get for a sequence.
struct MaeExamples {
  Example encoder;           ///< the kept tokens at their positions; every row is wanted
  Example decoder;           ///< all positions; rows and targets are the hidden ones
  std::vector<Index> given;  ///< rows of the decoder that get the encoder's states, in order
};

/// Makes both from `hidden`, an example of the objective mae-mask, whose rows are the hidden
/// tokens.
MaeExamples mae_examples(const Example& hidden);

}  // namespace masque::train
