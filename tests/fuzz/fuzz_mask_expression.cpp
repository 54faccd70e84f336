// The mask language: whatever parses prints to text that parses to the same, and can be bound to
// small lengths, where everything that is derived from the predicate agrees with it.
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "mask/block_map.hpp"
#include "mask/expression.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_bound(const masque::mask::MaskExpression& expression, masque::mask::Lengths lengths) {
  try {
    const masque::mask::Mask mask = expression.bind(lengths);
    const masque::mask::BlockMap map(mask);
    for (masque::Index q = 0; q < lengths.queries; ++q) {
      masque::Index visible = 0;
      const int keys = static_cast<int>(lengths.keys);
      const std::uint64_t bits = keys == 0 ? 0 : mask.bits(q, 0, keys);
      for (masque::Index k = 0; k < lengths.keys; ++k) {
        const bool allowed = mask.allows(q, k);
        require(allowed == ((bits >> k & 1) != 0));
        visible += allowed;
      }
      require(map.visible(q) == visible);
    }
  } catch (const masque::Error&) {
    return;  // these values do not fit these lengths
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<masque::mask::MaskLayer> layers = masque::mask::parse_mask_layers(text);
    require(masque::mask::parse_mask_layers(masque::mask::layers_text(layers)) == layers);
    for (const masque::mask::MaskLayer& layer : layers) {
      require(masque::mask::parse_mask(layer.mask.text()) == layer.mask);
      check_bound(layer.mask, {6, 6});
      check_bound(layer.mask, {3, 8});
      check_bound(layer.mask, {0, 0});
    }
  } catch (const masque::UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
