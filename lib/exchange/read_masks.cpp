#include "exchange/read_masks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "exchange/convention.hpp"
#include "exchange/matrix.hpp"
#include "mask/matrix_mask.hpp"
#include "mask/zoo.hpp"

namespace masque::exchange {

namespace {

using mask::MaskExpression;

/// The masks in the file `path`, one for each layer; one: for all.
std::vector<MaskExpression> masks_of_file(const std::string& path) {
  const std::string name = input_name(path);
  const auto leading_of = [](const Shape& shape) {
    return shape.size() < 2 ? 0 : shape.size() - 2;
  };
  const auto check = [&](DType, const Shape& shape) {
    if (leading_of(shape) <= 2) return;
    throw InputError(name, fmt::format("masks in shape {}, expected [n, n], [layers, n, n] or "
                                       "[layers, heads, n, n]",
                                       shape_text(shape)));
  };
  const store::Array array = read_matrix(path, check);
  check(array.dtype, array.shape);
  const std::size_t leading = leading_of(array.shape);
  const auto layers = static_cast<Index>(leading > 0 ? array.shape[0] : 1);
  const auto heads = static_cast<Index>(leading > 1 ? array.shape[1] : 1);
  if (layers == 0 || heads == 0)
    throw InputError(name, fmt::format("no mask in shape {}", shape_text(array.shape)));
  const Convention& allow = *find_convention("allow");
  std::vector<MaskExpression> masks;
  for (Index layer = 0; layer < layers; ++layer) {
    const auto mask_of = [&](Index head) {
      return allow.decode(array, {.path = name, .item = layer * heads + head});
    };
    const mask::BitMatrix bits = mask_of(0);
    if (bits.rows() != bits.columns()) {
      throw InputError(name, fmt::format("a mask of {} × {}, expected as many queries as keys",
                                         bits.rows(), bits.columns()));
    }
    for (Index head = 1; head < heads; ++head) {
      if (mask_of(head) == bits) continue;
      throw InputError(name, fmt::format("the masks of heads 0 and {} of layer {} differ, expected "
                                         "one mask for all heads of a layer",
                                         head, layer));
    }
    masks.push_back(mask::matrix_mask(bits));
  }
  return masks;
}

/// Reads the files of expressions, each once.
class FileReader {
 public:
  /// The most masks in a file that `mask` names; nothing if it names none.
  std::optional<Index> count(const MaskExpression& mask) {
    if (mask.kind() == MaskExpression::Kind::kName) {
      const std::vector<MaskExpression>* masks = masks_of(mask);
      return masks == nullptr ? std::nullopt : std::optional(std::ssize(*masks));
    }
    std::optional<Index> most;
    for (const MaskExpression& operand : mask.operands()) most = std::max(most, count(operand));
    return most;
  }

  /// `mask` for the layer `layer`: what its files have for that layer, or for all.
  MaskExpression of_layer(const MaskExpression& mask, Index layer, Index layers) {
    if (mask.kind() == MaskExpression::Kind::kName) {
      const std::vector<MaskExpression>* masks = masks_of(mask);
      if (masks == nullptr) return mask;
      if (masks->size() == 1) return masks->front();
      if (std::ssize(*masks) != layers) {
        throw InputError(
            fmt::format("{}: {} masks, expected {} as in another file of the "
                        "expression",
                        path_of(mask), masks->size(), layers));
      }
      return (*masks)[static_cast<std::size_t>(layer)];
    }
    std::optional<MaskExpression> second;
    if (mask.operands().size() > 1) second = of_layer(mask.operands()[1], layer, layers);
    return {mask.kind(), of_layer(mask.operands()[0], layer, layers), std::move(second)};
  }

 private:
  static std::string path_of(const MaskExpression& mask) {
    return mask::open_part(mask.named()) == mask::Open::kWords
               ? std::string()
               : mask::mask_values(mask.named()).file();
  }

  const std::vector<MaskExpression>* masks_of(const MaskExpression& mask) {
    const std::string path = path_of(mask);
    if (path.empty()) return nullptr;
    const auto found = files_.find(path);
    return found != files_.end() ? &found->second
                                 : &files_.emplace(path, masks_of_file(path)).first->second;
  }

  std::map<std::string, std::vector<MaskExpression>> files_;
};

}  // namespace

std::vector<mask::MaskLayer> read_files(const std::vector<mask::MaskLayer>& given) {
  FileReader files;
  std::vector<mask::MaskLayer> layers;
  for (const mask::MaskLayer& one : given) {
    const Index count = files.count(one.mask).value_or(1);
    if (count > 1 && (given.size() > 1 || one.count > 1)) {
      throw UsageError(
          fmt::format("'{}': a file with {} masks, one for each layer, expected one "
                      "mask in a list",
                      one.mask.shown(), count));
    }
    for (Index layer = 0; layer < count; ++layer) {
      const mask::MaskExpression mask = files.of_layer(one.mask, layer, count);
      if (layer > 0 && layers.back().mask == mask) {
        ++layers.back().count;
      } else {
        layers.push_back({one.count, mask});
      }
    }
  }
  return layers;
}

std::vector<mask::MaskLayer> read_mask_layers(std::string_view text) {
  return read_files(mask::parse_open_mask_layers(text, mask::MaskFiles::kAllowed));
}

std::string with_files_read(const std::string& text) {
  const std::vector<mask::MaskLayer> given =
      mask::parse_open_mask_layers(text, mask::MaskFiles::kAllowed);
  const std::vector<mask::MaskLayer> read = read_files(given);
  return read == given ? text : mask::layers_text(read);
}

}  // namespace masque::exchange
