// F8 weights with scales next to them.
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/quantized/quantized_weights.hpp"

namespace masque::store {

namespace {

constexpr auto kMostBlock = std::numeric_limits<std::int32_t>::max();

bool is_f8(const TensorInfo& tensor) {
  return is_float(tensor.dtype) && dtype_bits(tensor.dtype) == 8 && tensor.dtype != DType::kF8E8M0;
}

/// weight_block_size: rows and columns of a block; nothing if it is absent.
std::optional<std::pair<std::uint64_t, std::uint64_t>> f8_block(JsonSettings& settings) {
  const char* key = "weight_block_size";
  const JsonValue* value = settings.find(key);
  if (value == nullptr) return std::nullopt;
  const char* expected = "a list of two whole numbers from 1";
  if (!value->is(JsonKind::kArray) || value->items.size() != 2) settings.refuse(key, expected);
  std::uint64_t sizes[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    sizes[i] = value->items[i].integer().value_or(0);
    if (sizes[i] == 0 || sizes[i] > kMostBlock) settings.refuse(key, expected);
  }
  return std::pair(sizes[0], sizes[1]);
}

/// The grid of `scales` over `codes`: one for all, or blocks of the size given, else the whole part
/// of each.
ScaleGrid f8_grid(const StoredPart& codes, const StoredPart& scales,
                  const std::optional<std::pair<std::uint64_t, std::uint64_t>>& block) {
  const std::uint64_t rows = codes.info.shape[0];
  const std::uint64_t columns = codes.info.shape[1];
  if (scales.info.elements() == 1) return {rows, columns, 1, 1};
  if (block) {
    const ScaleGrid grid{block->first, block->second, divide_up(rows, block->first),
                         divide_up(columns, block->second)};
    QuantizedWeights::check_shape(scales, {grid.rows, grid.columns});
    return grid;
  }
  const Shape& shape = scales.info.shape;
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || rows % shape[0] != 0 ||
      columns % shape[1] != 0) {
    throw scales.error(fmt::format("shape {}, expected numbers that divide {}", shape_text(shape),
                                   shape_text(codes.info.shape)));
  }
  return {rows / shape[0], columns / shape[1], shape[0], shape[1]};
}

void add_f8(QuantizedWeights& weights, StoredPart codes, StoredPart scales, const ScaleGrid& grid) {
  const TensorInfo info = codes.info;
  const StoredPart first = codes;
  weights.add(info.name, info.shape,
              grid_reader(std::move(codes), std::move(scales), std::nullopt, grid, 1, false,
                          weights.cache()),
              first);
}

constexpr const char* kActivations8 =
    "kernels of this scheme round activations to 8 bits, too, which is not done here";

}  // namespace

std::string decode_fp8(JsonSettings& settings, QuantizedWeights& weights) {
  settings.ignore({"modules_to_not_convert", "modules_to_convert", "ignored_layers", "dequantize"});
  const std::string activations = settings.string("activation_scheme").value_or("dynamic");
  if (activations != "dynamic" && activations != "static")
    settings.refuse("activation_scheme", "'dynamic' or 'static'");
  const std::string scale_format = settings.string("scale_fmt").value_or("float");
  if (scale_format != "float" && scale_format != "ue8m0")
    settings.refuse("scale_fmt", "'float' or 'ue8m0'");
  settings.need("expert_dtype", "fp8");
  const std::string format = settings.string("fmt").value_or("");
  if (!format.empty() && format != "e4m3" && format != "e5m2")
    settings.refuse("fmt", "'e4m3' or 'e5m2'");
  const auto block = f8_block(settings);
  for (const TensorInfo& tensor : weights.checkpoint().tensors()) {
    if (!is_f8(tensor)) continue;
    StoredPart codes = *weights.take(tensor.name);
    check_matrix(codes);
    auto scales = weights.take(tensor.name + "_scale");
    if (!scales) scales = weights.need(tensor.name + "_scale_inv", tensor.name);
    QuantizedWeights::check_type(
        *scales, {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E8M0, DType::kU8});
    const ScaleGrid grid = f8_grid(codes, *scales, block);
    const std::string stem = tensor.name.substr(0, tensor.name.rfind('.') + 1);
    for (const char* input : {"activation_scale", "input_scale"}) weights.take(stem + input);
    add_f8(weights, std::move(codes), *std::move(scales), grid);
  }
  return kActivations8;
}

std::string decode_fbgemm_fp8(JsonSettings& settings, QuantizedWeights& weights) {
  // An upper bound of what activations are scaled by.
  settings.ignore({"activation_scale_ub", "modules_to_not_convert"});
  for (const TensorInfo& tensor : weights.checkpoint().tensors()) {
    if (!is_f8(tensor)) continue;
    StoredPart codes = *weights.take(tensor.name);
    check_matrix(codes);
    StoredPart scales = weights.need(tensor.name + "_scale", tensor.name);
    QuantizedWeights::check_type(scales, {DType::kF32, DType::kBF16, DType::kF16});
    const std::uint64_t rows = codes.info.shape[0];
    QuantizedWeights::check_shape(scales, {rows, 1});
    const std::string stem = tensor.name.substr(0, tensor.name.rfind('.') + 1);
    weights.take(stem + "input_scale_ub");
    const ScaleGrid grid{1, codes.info.shape[1], rows, 1};
    add_f8(weights, std::move(codes), std::move(scales), grid);
  }
  return kActivations8;
}

}  // namespace masque::store
