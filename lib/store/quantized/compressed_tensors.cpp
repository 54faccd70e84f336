// compressed-tensors: F8 and integers of 8 bits with scales, and integers packed into words.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/name_list.hpp"
#include "store/quantized/quantized_weights.hpp"

namespace masque::store {

namespace {

/// What all groups of modules of a file say of weights.
struct WeightScheme {
  unsigned bits = 8;
  bool is_float = true;
  bool symmetric = true;
  std::uint64_t group_size = 0;  ///< columns of a group; 0: none
  std::optional<std::pair<std::uint64_t, std::uint64_t>> block;
  bool activations = false;  ///< are quantised, too

  bool operator==(const WeightScheme&) const = default;
};

/// Of `settings`, the members of `object`: a null is no value.
void refuse_unknown_members(JsonSettings& settings, const JsonValue& object) {
  for (const JsonMember& member : object.members) {
    if (member.value.is(JsonKind::kNull)) settings.ignore({member.name});
  }
  const auto unknown = settings.unknown();
  if (!unknown.empty())
    throw InputError(settings.path(), fmt::format("{}: expected only keys whose meaning is known",
                                                  escape(unknown.front())));
}

WeightScheme scheme_of_group(JsonSettings& group, const JsonValue& object) {
  group.ignore({"targets", "format"});
  WeightScheme scheme;
  for (const char* key : {"input_activations", "output_activations"})
    scheme.activations = scheme.activations || group.find(key) != nullptr;
  JsonSettings weights = group.object("weights");
  if (weights.empty()) group.refuse("weights", "an object");
  weights.ignore({"observer", "observer_kwargs", "zp_dtype", "scale_dtype", "actorder"});
  if (weights.flag("dynamic", false)) weights.refuse("dynamic", "false");
  scheme.bits = static_cast<unsigned>(weights.integer("num_bits", 2, 8).value_or(8));
  const std::string type = weights.string("type").value_or("int");
  if (type != "int" && type != "float") weights.refuse("type", "'int' or 'float'");
  scheme.is_float = type == "float";
  scheme.symmetric = weights.flag("symmetric", true);
  const std::string strategy = weights.string("strategy").value_or("tensor");
  if (!has_word("tensor channel group block", strategy))
    weights.refuse("strategy", "'tensor', 'channel', 'group' or 'block'");
  const char* size = "group_size";
  const JsonValue* given = weights.find(size);
  if (strategy == "group") {
    scheme.group_size =
        static_cast<std::uint64_t>(weights.integer(size, 1, std::int64_t{1} << 31).value_or(0));
    if (scheme.group_size == 0) weights.refuse(size, "a whole number from 1");
  } else if (given != nullptr && given->number() != -1) {
    weights.refuse(size, "no value without the strategy 'group'");
  }
  const JsonValue* block = weights.find("block_structure");
  if (strategy == "block") {
    const auto side = [&](std::size_t i) {
      const bool fits = block != nullptr && block->is(JsonKind::kArray) && block->items.size() == 2;
      const std::uint64_t value = fits ? block->items[i].integer().value_or(0) : 0;
      if (value == 0 || value > (std::uint64_t{1} << 31))
        weights.refuse("block_structure", "a list of two whole numbers from 1");
      return value;
    };
    scheme.block = std::pair(side(0), side(1));
  }
  refuse_unknown_members(weights, *object.find("weights"));
  refuse_unknown_members(group, object);
  return scheme;
}

/// The scheme of all groups: which module is in which group is not looked at.
WeightScheme scheme_of_all(JsonSettings& settings) {
  const char* key = "config_groups";
  const JsonValue* groups = settings.find(key);
  if (groups == nullptr || !groups->is(JsonKind::kObject) || groups->members.empty())
    settings.refuse(key, "an object with groups");
  std::optional<WeightScheme> all;
  JsonSettings members = settings.object(key);
  for (const JsonMember& member : groups->members) {
    JsonSettings group = members.object(member.name);
    const WeightScheme scheme = scheme_of_group(group, member.value);
    if (all && !(*all == scheme))
      members.refuse(member.name, "the same settings for the weights of all groups");
    all = scheme;
  }
  return *all;
}

/// The grid of `scales` over a matrix [rows, columns].
ScaleGrid grid_of_scheme(const StoredPart& scales, std::uint64_t rows, std::uint64_t columns,
                         const WeightScheme& scheme) {
  if (scales.info.elements() == 1) return {rows, columns, 1, 1};
  if (scheme.block) {
    const ScaleGrid grid{scheme.block->first, scheme.block->second,
                         divide_up(rows, scheme.block->first),
                         divide_up(columns, scheme.block->second)};
    QuantizedWeights::check_shape(scales, {grid.rows, grid.columns});
    return grid;
  }
  const std::uint64_t size = scheme.group_size == 0 ? columns : scheme.group_size;
  const std::uint64_t groups = divide_up(columns, size);
  if (!(groups == 1 && scales.info.shape == Shape{rows}))
    QuantizedWeights::check_shape(scales, {rows, groups});
  return {1, size, rows, groups};
}

/// Integers packed into words, the first in the lowest bits, a row begins with a word. Codes have
/// half of their range added.
class PackedReader : public PieceReader {
 public:
  /// The stored parts, and what they say.
  struct Parts {
    StoredPart codes;
    StoredPart scales;
    std::optional<StoredPart> zeros;   ///< packed along rows, or of the shape of the scales
    std::optional<StoredPart> groups;  ///< of each column
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    unsigned bits = 4;
    ScaleGrid grid;
  };

  PackedReader(Parts parts, std::shared_ptr<PieceCache> cache)
      : PieceReader(parts.rows * parts.columns, band(parts) * parts.columns, std::move(cache)),
        parts_(std::move(parts)) {}

 private:
  static std::uint64_t band(const Parts& parts) {
    return std::max<std::uint64_t>(1, kPieceElements / parts.columns);
  }
  std::uint64_t pack() const { return 32 / parts_.bits; }
  std::uint64_t words() const { return parts_.codes.info.shape[1]; }
  float half() const { return static_cast<float>(1U << (parts_.bits - 1)); }

  float number(std::uint32_t word, std::uint64_t place) const {
    const std::uint32_t mask = (1U << parts_.bits) - 1U;
    return static_cast<float>(word >> (place % pack() * parts_.bits) & mask) - half();
  }

  StoredPiece load(std::uint64_t piece) const override {
    const std::uint64_t first = piece * band(parts_);
    const std::uint64_t rows = std::min(band(parts_), parts_.rows - first);
    StoredPiece stored;
    stored.words.resize(rows * words());
    parts_.codes.read_words(first * words(), stored.words);
    const std::uint64_t begin = first / parts_.grid.block_rows;
    const std::uint64_t end = (first + rows - 1) / parts_.grid.block_rows + 1;
    const std::uint64_t groups = parts_.grid.columns;
    stored.scales.resize((end - begin) * groups);
    parts_.scales.read_scales(begin * groups, stored.scales, false);
    if (parts_.zeros) stored.zeros = zeros_of(begin, end);
    if (parts_.groups) stored.groups = groups_of();
    return stored;
  }

  std::vector<float> zeros_of(std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t groups = parts_.grid.columns;
    std::vector<float> zeros((end - begin) * groups);
    if (parts_.zeros->info.dtype != DType::kI32) {
      parts_.zeros->read_floats(begin * groups, zeros);
      return zeros;
    }
    const std::uint64_t first = begin / pack();
    std::vector<std::uint32_t> packed((divide_up(end, pack()) - first) * groups);
    parts_.zeros->read_words(first * groups, packed);
    for (std::uint64_t row = begin; row < end; ++row) {
      for (std::uint64_t group = 0; group < groups; ++group)
        zeros[(row - begin) * groups + group] =
            number(packed[(row / pack() - first) * groups + group], row);
    }
    return zeros;
  }

  std::vector<std::uint32_t> groups_of() const {
    std::vector<std::uint32_t> of_column(parts_.columns);
    parts_.groups->read_words(0, of_column);
    for (std::uint64_t i = 0; i < of_column.size(); ++i) {
      if (of_column[i] < parts_.grid.columns) continue;
      throw parts_.groups->error(fmt::format("column {} is in group {}, expected 0 to {}", i,
                                             static_cast<std::int32_t>(of_column[i]),
                                             parts_.grid.columns - 1));
    }
    return of_column;
  }

  void decode(const StoredPiece& stored, std::uint64_t piece, std::uint64_t first,
              std::span<float> out) const override {
    const std::uint64_t piece_row = piece * band(parts_);
    const std::uint64_t begin = piece_row / parts_.grid.block_rows;
    std::uint64_t row = first / parts_.columns;
    std::uint64_t column = first % parts_.columns;
    for (float& value : out) {
      const std::uint64_t group =
          stored.groups.empty() ? column / parts_.grid.block_columns : stored.groups[column];
      const std::uint64_t place =
          ((piece_row + row) / parts_.grid.block_rows - begin) * parts_.grid.columns + group;
      const float zero = stored.zeros.empty() ? 0 : stored.zeros[place];
      value = (number(stored.words[row * words() + column / pack()], column) - zero) *
              stored.scales[place];
      if (++column == parts_.columns) {
        column = 0;
        ++row;
      }
    }
  }

  Parts parts_;
};

StoredPart scales_of_weight(QuantizedWeights& weights, const std::string& name) {
  StoredPart scales = weights.need(name + "_scale", name);
  QuantizedWeights::check_type(scales, {DType::kF32, DType::kBF16, DType::kF16});
  return scales;
}

std::optional<StoredPart> zeros_of_weight(QuantizedWeights& weights, const std::string& name,
                                          const WeightScheme& scheme) {
  const std::string zeros = name + "_zero_point";
  return scheme.symmetric ? weights.take(zeros) : weights.need(zeros, name);
}

void take_activation_parts(QuantizedWeights& weights, const std::string& name) {
  const std::string stem = name.substr(0, name.rfind('.') + 1);
  for (const char* part : {"input_scale", "input_zero_point", "output_scale", "output_zero_point"})
    weights.take(stem + part);
}

void add_plain(QuantizedWeights& weights, const TensorInfo& tensor, const WeightScheme& scheme) {
  StoredPart codes = *weights.take(tensor.name);
  check_matrix(codes);
  StoredPart scales = scales_of_weight(weights, tensor.name);
  auto zeros = zeros_of_weight(weights, tensor.name, scheme);
  if (zeros) QuantizedWeights::check_shape(*zeros, scales.info.shape);
  if (zeros && (is_packed(zeros->info.dtype) || zeros->info.dtype == DType::kC64))
    QuantizedWeights::check_type(*zeros, {DType::kI8});
  const ScaleGrid grid = grid_of_scheme(scales, tensor.shape[0], tensor.shape[1], scheme);
  const StoredPart first = codes;
  weights.add(tensor.name, tensor.shape,
              grid_reader(std::move(codes), std::move(scales), std::move(zeros), grid, 1, false,
                          weights.cache()),
              first);
  take_activation_parts(weights, tensor.name);
}

void add_packed(QuantizedWeights& weights, const std::string& name, const WeightScheme& scheme) {
  PackedReader::Parts parts{.codes = weights.need(name + "_packed", name),
                            .scales = scales_of_weight(weights, name),
                            .zeros = zeros_of_weight(weights, name, scheme),
                            .groups = weights.take(name + "_g_idx"),
                            .bits = scheme.bits,
                            .grid = {}};
  QuantizedWeights::check_type(parts.codes, {DType::kI32});
  check_matrix(parts.codes);
  const StoredPart shape = weights.need(name + "_shape", name);
  QuantizedWeights::check_type(shape, {DType::kI64, DType::kI32});
  QuantizedWeights::check_shape(shape, {2});
  float sides[2] = {};
  shape.read_floats(0, sides);
  const std::uint64_t pack = 32 / scheme.bits;
  const std::uint64_t rows = parts.codes.info.shape[0];
  const std::uint64_t words = parts.codes.info.shape[1];
  parts.rows = rows;
  parts.columns = sides[1] >= 1 && sides[1] < 0x1p24F ? static_cast<std::uint64_t>(sides[1]) : 0;
  if (sides[0] != static_cast<float>(rows) || parts.columns == 0 ||
      divide_up(parts.columns, pack) != words) {
    throw shape.error(fmt::format("[{},{}], expected a shape of {} packed numbers in {}", sides[0],
                                  sides[1], scheme.bits, shape_text(parts.codes.info.shape)));
  }
  parts.grid = grid_of_scheme(parts.scales, rows, parts.columns, scheme);
  if (parts.zeros) {
    const bool packed = parts.zeros->info.dtype == DType::kI32;
    if (!packed) QuantizedWeights::check_type(*parts.zeros, {DType::kI8, DType::kI32});
    QuantizedWeights::check_shape(
        *parts.zeros, packed ? Shape{divide_up(parts.grid.rows, pack), parts.grid.columns}
                             : parts.scales.info.shape);
  }
  if (parts.groups) {
    QuantizedWeights::check_type(*parts.groups, {DType::kI32});
    QuantizedWeights::check_shape(*parts.groups, {parts.columns});
    std::vector<std::uint32_t> start(1);
    parts.groups->read_words(0, start);
    // Not set by the program that wrote it: groups in order.
    if (start[0] == ~0U) parts.groups.reset();
  }
  const Shape decoded{rows, parts.columns};
  const StoredPart first = parts.codes;
  weights.add(name, decoded, std::make_shared<PackedReader>(std::move(parts), weights.cache()),
              first);
  take_activation_parts(weights, name);
}

}  // namespace

std::string decode_compressed(JsonSettings& settings, QuantizedWeights& weights) {
  settings.ignore({"ignore", "quantization_status", "global_compression_ratio", "version",
                   "run_compressed", "dequantize", "use_optimized_inference"});
  const std::string format = settings.string("format").value_or("dense");
  for (const char* key : {"kv_cache_scheme"}) {
    if (settings.find(key) != nullptr)
      settings.refuse(key, "no value: quantised keys and values are not supported");
  }
  for (const char* key : {"sparsity_config", "transform_config"}) {
    JsonSettings inner = settings.object(key);
    inner.ignore({"ignore", "targets", "global_sparsity", "sparsity_structure",
                  "registry_requires_subclass"});
    const bool dense = inner.string("format").value_or("dense") == "dense";
    if (!dense || !inner.unknown().empty()) settings.refuse(key, "an empty object");
  }
  if (!has_word("float-quantized naive-quantized int-quantized pack-quantized", format)) {
    settings.refuse("format",
                    "'float-quantized', 'naive-quantized', 'int-quantized' or 'pack-quantized'");
  }
  const WeightScheme scheme = scheme_of_all(settings);
  if (format == "pack-quantized") {
    if (scheme.is_float || (scheme.bits != 2 && scheme.bits != 4 && scheme.bits != 8))
      settings.refuse("config_groups", "integers of 2, 4 or 8 bits");
    for (const auto& [name, codes] : weights.ending_with("_packed"))
      add_packed(weights, name, scheme);
  } else {
    if (scheme.bits != 8) settings.refuse("config_groups", "weights of 8 bits");
    const auto is_code = [&](const TensorInfo& tensor) {
      if (!scheme.is_float) return tensor.dtype == DType::kI8 && tensor.name.ends_with(".weight");
      return is_float(tensor.dtype) && dtype_bits(tensor.dtype) == 8 &&
             tensor.dtype != DType::kF8E8M0;
    };
    for (const TensorInfo& tensor : weights.checkpoint().tensors()) {
      if (is_code(tensor)) add_plain(weights, tensor, scheme);
    }
  }
  return scheme.activations
             ? "its activations are quantised, too, where it is run by other programs, which is "
               "not done here"
             : "";
}

}  // namespace masque::store
