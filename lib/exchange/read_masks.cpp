#include "exchange/read_masks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "exchange/convention.hpp"
#include "exchange/matrix.hpp"
#include "mask/expression.hpp"
#include "mask/zoo.hpp"

namespace masque::exchange {

namespace {

using mask::MaskExpression;

/// Those of a file, head by head of the first layer, then of the next.
struct FileMasks {
  std::vector<MaskExpression> masks;
  Index layers = 1;  ///< 1: for all
  Index heads = 1;   ///< of each layer; 1: for all, also where those of each layer are equal

  const MaskExpression& at(Index layer, Index head) const {
    const Index own = layers == 1 ? 0 : layer;
    return masks[static_cast<std::size_t>(own * heads + (heads == 1 ? 0 : head))];
  }
};

/// One mask a layer, if its heads have equal ones in all layers.
void join_equal_heads(FileMasks& file) {
  for (Index layer = 0; layer < file.layers; ++layer) {
    for (Index head = 1; head < file.heads; ++head) {
      if (file.at(layer, head) != file.at(layer, 0)) return;
    }
  }
  std::vector<MaskExpression> first;
  for (Index layer = 0; layer < file.layers; ++layer) first.push_back(file.at(layer, 0));
  file.masks = std::move(first);
  file.heads = 1;
}

FileMasks masks_of_file(const std::string& path) {
  const std::string name = input_name(path);
  const auto leading_of = [](const Shape& shape) {
    return shape.size() < 2 ? 0 : shape.size() - 2;
  };
  const Convention& allow = *find_convention("allow");
  const auto check = [&](DType dtype, const Shape& shape) {
    if (leading_of(shape) > 2) {
      throw InputError(name, fmt::format("masks in shape {}, expected [n, n], [layers, n, n] or "
                                         "[layers, heads, n, n]",
                                         shape_text(shape)));
    }
    if (leading_of(shape) > 0 && std::find(shape.begin(), shape.end() - 2, 0U) != shape.end() - 2)
      throw InputError(name, fmt::format("no mask in shape {}", shape_text(shape)));
    allow.check(dtype, shape, {.path = name, .item = 0});
    const std::uint64_t queries = shape[shape.size() - 2];
    if (queries == shape.back()) return;
    throw InputError(name, fmt::format("a mask of {} × {}, expected as many queries as keys",
                                       queries, shape.back()));
  };
  const store::Array array = read_matrix(path, check);
  check(array.dtype, array.shape);
  const std::size_t leading = leading_of(array.shape);
  FileMasks file;
  file.layers = static_cast<Index>(leading > 0 ? array.shape[0] : 1);
  file.heads = static_cast<Index>(leading > 1 ? array.shape[1] : 1);
  for (Index item = 0; item < file.layers * file.heads; ++item) {
    file.masks.push_back(mask::matrix_mask(allow.decode(array, {.path = name, .item = item})));
  }
  join_equal_heads(file);
  return file;
}

/// Reads the files of expressions, each once.
class FileReader {
 public:
  /// The most layers and heads of a file that `mask` names; 1 if it names none.
  struct Count {
    Index layers = 1;
    Index heads = 1;
  };
  Count count(const MaskExpression& mask) {
    if (mask.kind() == MaskExpression::Kind::kName) {
      const FileMasks* file = masks_of(mask);
      return file == nullptr ? Count{} : Count{file->layers, file->heads};
    }
    Count most;
    for (const MaskExpression& operand : mask.operands()) {
      const Count own = count(operand);
      most = {std::max(most.layers, own.layers), std::max(most.heads, own.heads)};
    }
    return most;
  }

  /// `mask` for the layer `layer` of `count`: what its files have for that layer, or for all.
  MaskExpression of_layer(const MaskExpression& mask, Index layer, const Count& count) {
    if (count.heads == 1 && mask.kind() != MaskExpression::Kind::kHeads)
      return of_head(mask, layer, 0, count);
    std::vector<MaskExpression> heads;
    if (mask.kind() == MaskExpression::Kind::kHeads) {
      for (const MaskExpression& head : mask.operands())
        heads.push_back(of_head(head, layer, 0, count));
    } else {
      for (Index head = 0; head < count.heads; ++head)
        heads.push_back(of_head(mask, layer, head, count));
    }
    return MaskExpression(std::move(heads));
  }

 private:
  /// `mask`, which is not kHeads, for the head `head` of a layer.
  MaskExpression of_head(const MaskExpression& mask, Index layer, Index head, const Count& count) {
    if (mask.kind() == MaskExpression::Kind::kName) {
      const FileMasks* file = masks_of(mask);
      if (file == nullptr) return mask;
      check(path_of(mask), "layers", file->layers, count.layers);
      check(path_of(mask), "heads", file->heads, count.heads);
      return file->at(layer, head);
    }
    std::optional<MaskExpression> second;
    if (mask.operands().size() > 1) second = of_head(mask.operands()[1], layer, head, count);
    return {mask.kind(), of_head(mask.operands()[0], layer, head, count), std::move(second)};
  }

  static void check(const std::string& path, std::string_view what, Index own, Index others) {
    if (own == 1 || own == others) return;
    throw InputError(input_name(path),
                     fmt::format("masks of {} {}, expected {} as in another file of the expression",
                                 own, what, others));
  }

  static std::string path_of(const MaskExpression& mask) {
    return mask::open_part(mask.named()) == mask::Open::kWords
               ? std::string()
               : mask::mask_values(mask.named()).file();
  }

  const FileMasks* masks_of(const MaskExpression& mask) {
    const std::string path = path_of(mask);
    if (path.empty()) return nullptr;
    const auto found = files_.find(path);
    return found != files_.end() ? &found->second
                                 : &files_.emplace(path, masks_of_file(path)).first->second;
  }

  std::map<std::string, FileMasks> files_;
};

}  // namespace

std::vector<mask::MaskLayer> read_files(const std::vector<mask::MaskLayer>& given) {
  FileReader files;
  std::vector<mask::MaskLayer> layers;
  for (const mask::MaskLayer& one : given) {
    const FileReader::Count count = files.count(one.mask);
    if (count.layers > 1 && (given.size() > 1 || one.count > 1)) {
      throw UsageError(
          fmt::format("'{}': a file with {} masks, one for each layer, expected one "
                      "mask in a list",
                      one.mask.shown(), count.layers));
    }
    if (count.heads > 1 && !one.mask.heads().empty()) {
      throw UsageError(
          fmt::format("'{}': a file with {} masks, one for each head, expected one "
                      "mask in a list",
                      one.mask.shown(), count.heads));
    }
    for (Index layer = 0; layer < count.layers; ++layer) {
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
