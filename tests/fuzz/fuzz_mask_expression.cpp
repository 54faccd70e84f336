// The mask language: whatever parses prints to text that parses to the same, and can be bound to
// small lengths, where everything that is derived from the predicate agrees with it.
#include <string_view>

#include "base/error.hpp"
#include "fuzz/fuzz.hpp"
#include "mask/block_map.hpp"
#include "mask/expression.hpp"

namespace {

void check_bound(const masque::mask::MaskExpression& expression, masque::mask::Lengths lengths) {
  masque::test::accepts([&] {  // or these values do not fit these lengths
    const masque::mask::Mask mask = expression.bind(lengths);
    const masque::mask::BlockMap map(mask);
    for (masque::Index q = 0; q < lengths.queries; ++q) {
      masque::Index visible = 0;
      const int keys = static_cast<int>(lengths.keys);
      const std::uint64_t bits = keys == 0 ? 0 : mask.bits(q, 0, keys);
      for (masque::Index k = 0; k < lengths.keys; ++k) {
        const bool allowed = mask.allows(q, k);
        masque::test::require(allowed == ((bits >> k & 1) != 0), "other bits");
        visible += allowed;
      }
      masque::test::require(map.visible(q) == visible, "another block map");
    }
  });
}

void check(std::string_view text) {
  using namespace masque::mask;  // NOLINT(google-build-using-namespace)
  masque::test::accepts([&] {
    const std::vector<MaskLayer> layers = parse_mask_layers(text);
    masque::test::require(parse_mask_layers(layers_text(layers)) == layers, "another list");
    for (const MaskLayer& layer : layers) {
      masque::test::require(parse_mask(layer.mask.text()) == layer.mask, "another mask");
      check_bound(layer.mask, {6, 6});
      check_bound(layer.mask, {3, 8});
      check_bound(layer.mask, {0, 0});
    }
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
