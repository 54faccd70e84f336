// Designs that a run compares: the product of lists of names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mask/expression.hpp"
#include "train/network/recipe.hpp"

namespace masque::length {

/// Returns the lengths in `text`, such as "64,128" or "1-40", in that order. Throws UsageError,
/// about the field `name`, unless these are different numbers from `least` to 1000000.
std::vector<Index> parse_lengths(std::string_view name, std::string_view text, Index least = 1);

/// The name in a list that stands for the mask of the objective, or for what a trained model has.
inline constexpr const char* kOwn = "own";

/// Returns the masks in `text`, such as "own; window(64); 3*window(16), full": one list of layer
/// masks for each part between semicolons, empty for kOwn. Throws UsageError for an invalid mask,
/// and for a mask that occurs twice.
std::vector<std::vector<mask::MaskLayer>> parse_masks(std::string_view text);

/// A design in a comparison.
struct LengthArm {
  std::string name;  ///< what differs from other arms; for a single arm position and normalizer
  train::DesignRecipe recipe;  ///< one name in each field, no lists
  std::string mask = {};       ///< as model::set_mask takes it; empty: the objective's
};

/// Every combination of `heads`, of `masks` (as parse_masks takes them), and of the names in
/// `recipe`'s position, normalizer, norm_placement, layer_kind, mixer, talking_heads and
/// previous_scores, each a list; the last one varies fastest. The mixer "none" is attention, the
/// mask "own" the objective's. Of equal designs, such as gated units with different numbers of
/// heads, only the first is kept. Throws UsageError for unknown names, for masks that depend on
/// words or a seed, and for combinations that are not supported.
std::vector<LengthArm> make_arms(const train::DesignRecipe& recipe, std::string_view heads,
                                 std::string_view masks = kOwn);

}  // namespace masque::length
