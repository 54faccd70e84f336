// Soft-Masked BERT: a detector says which tokens are wrong, and the layers read these half hidden
// and say what should stand there. Zhang et al. 2020, arXiv:2005.07421.
#pragma once

#include "train/data/objective.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// The objective's name on the command line. It is no Objective, since two losses are minimised
/// together.
inline constexpr std::string_view kCorrect = "correct";

/// Returns the sizes of a detector of `layers` layers beside a model of `design`, made by `recipe`:
/// widths of `size` (more than 0, at most 1) times the model's, heads of the same size where that
/// is possible. Throws UsageError for another size.
model::DetectorDesign detector_sizes(const model::Design& design, const DesignRecipe& recipe,
                                     double size, Index layers);

/// Sets what the objective decides of `design`, as Objective::adapt: a masked head, one stream, a
/// mask token, and `detector` where the design has none. Of `requested` the tokens are read. Throws
/// UsageError also as model::detector_rows.
void adapt_correction(const ObjectiveOptions& requested, const model::DetectorDesign& detector,
                      model::Design& design);

}  // namespace masque::train
