#include "model/masque_names.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "model/masks.hpp"

namespace masque::model {

void read_mask(const FamilyConfig& config, Design& design) {
  if (!config.has("mask")) return;
  const std::string text = config.text("mask", "");
  if (std::ranges::any_of(kMasks, [&](const auto& own) { return own.first == text; })) {
    design.mask = read_word(config, "mask", kMasks, design.mask);
    design.variants.mask.clear();
  } else if (const auto problem = usage_error_message([&] { set_mask(text, design); })) {
    throw InputError(config.raw().path(), fmt::format("mask: {}", *problem));
  }
}

std::string mask_word(const Design& design) {
  return design.variants.mask.empty() ? std::string(word_of(kMasks, design.mask))
                                      : design.variants.mask;
}

}  // namespace masque::model
