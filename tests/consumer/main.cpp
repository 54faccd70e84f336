// Draws a mask of the language, and tells whether the registries have come along.
#include <iostream>
#include <string_view>

#include "base/version.hpp"
#include "mask/expression.hpp"
#include "mask/zoo.hpp"
#include "model/family_names.hpp"

int main() {
  const masque::mask::Mask mask = masque::mask::parse_mask("causal & window(2)").bind({6, 6});
  for (masque::Index q = 0; q < 6; ++q) {
    for (masque::Index k = 0; k < 6; ++k) std::cout << (mask.allows(q, k) ? '#' : '.');
    std::cout << '\n';
  }
  std::cout << "more than 30 masks: " << (masque::mask::mask_kinds().size() > 30) << '\n';
  std::cout << "bert is a family: " << (masque::model::find_family_names("bert") != nullptr)
            << '\n';
  std::cout << "has a version: " << !std::string_view(masque::kVersion).empty() << '\n';
}
