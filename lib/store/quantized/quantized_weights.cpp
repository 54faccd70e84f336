#include "store/quantized/quantized_weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

namespace {

/// Names of what is a part of a quantised weight.
constexpr auto kPartEndings = std::to_array<std::string_view>({"weight_scale",
                                                               "weight_scale_inv",
                                                               "weight_scale_2",
                                                               "weight_zero_point",
                                                               "weight_packed",
                                                               "weight_g_idx",
                                                               "weight_shape",
                                                               ".qweight",
                                                               ".qzeros",
                                                               ".scales",
                                                               ".g_idx",
                                                               ".SCB",
                                                               ".weight_format",
                                                               ".absmax",
                                                               ".quant_map",
                                                               ".nested_absmax",
                                                               ".nested_quant_map",
                                                               ".input_scale",
                                                               ".input_zero_point",
                                                               ".output_scale",
                                                               ".activation_scale",
                                                               ".q_scale",
                                                               ".k_scale",
                                                               ".v_scale",
                                                               "input_global_scale",
                                                               "weight_global_scale"});

}  // namespace

InputError StoredPart::error(std::string_view what) const {
  return {file->path(), fmt::format("{}: {}", escape(info.name), what)};
}

void StoredPart::read_floats(std::uint64_t first, std::span<float> out) const {
  const std::uint64_t width = dtype_bits(info.dtype) / 8;
  std::vector<std::byte> bytes(out.size() * width);
  read(first * width, bytes);
  to_float(info.dtype, bytes, out);
}

void StoredPart::read_words(std::uint64_t first, std::span<std::uint32_t> out) const {
  static_assert(std::endian::native == std::endian::little);
  read(first * sizeof(std::uint32_t), std::as_writable_bytes(out));
}

void StoredPart::read_scales(std::uint64_t first, std::span<float> out, bool zero_is_legal) const {
  read_floats(first, out);
  if (info.dtype == DType::kU8) {
    for (float& scale : out)
      scale = static_cast<float>(decode_e8m0(static_cast<std::uint32_t>(scale)));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::isfinite(out[i]) && (out[i] != 0 || zero_is_legal)) continue;
    throw error(fmt::format("scale {} is {}, expected a finite number{}", first + i, out[i],
                            zero_is_legal ? "" : " that is not 0"));
  }
}

QuantizedWeights::QuantizedWeights(const Checkpoint& checkpoint) : checkpoint_(&checkpoint) {}

std::vector<std::pair<std::string, const TensorInfo*>> QuantizedWeights::ending_with(
    std::string_view ending) const {
  std::vector<std::pair<std::string, const TensorInfo*>> found;
  for (const TensorInfo& tensor : checkpoint_->tensors()) {
    if (tensor.name.ends_with(ending))
      found.emplace_back(tensor.name.substr(0, tensor.name.size() - ending.size()), &tensor);
  }
  return found;
}

std::optional<StoredPart> QuantizedWeights::take(const std::string& name) {
  const TensorInfo* tensor = checkpoint_->find(name);
  if (tensor == nullptr) return std::nullopt;
  taken_.insert(name);
  return StoredPart{&checkpoint_->files()[tensor->file].file, *tensor};
}

StoredPart QuantizedWeights::need(const std::string& name, const std::string& weight) {
  if (auto part = take(name)) return *std::move(part);
  throw InputError(checkpoint_->path(),
                   fmt::format("'{}' is quantised, and there is no tensor '{}', expected one: its "
                               "numbers mean nothing without it",
                               escape(weight), escape(name)));
}

void QuantizedWeights::check_type(const StoredPart& part, std::initializer_list<DType> types) {
  if (std::ranges::find(types, part.info.dtype) != types.end()) return;
  std::vector<std::string_view> names;
  for (const DType type : types) names.push_back(dtype_name(type));
  throw part.error(
      fmt::format("type {}, expected {}", dtype_name(part.info.dtype), fmt::join(names, ", ")));
}

void QuantizedWeights::check_shape(const StoredPart& part, const Shape& shape) {
  if (part.info.shape == shape) return;
  throw part.error(
      fmt::format("shape {}, expected {}", shape_text(part.info.shape), shape_text(shape)));
}

void QuantizedWeights::add(const std::string& name, const Shape& shape,
                           std::shared_ptr<const TensorReader> reader, const StoredPart& first) {
  if (checkpoint_->find(name) != nullptr && !taken_.contains(name)) {
    throw InputError(checkpoint_->path(),
                     fmt::format("'{}' is there, and so is '{}', expected one of them",
                                 escape(name), escape(first.info.name)));
  }
  const auto bytes = byte_count(DType::kF32, shape);
  if (!bytes || first.info.begin + *bytes < first.info.begin)
    throw first.error(fmt::format("{} elements are too many", shape_text(shape)));
  TensorInfo tensor;
  tensor.name = name;
  tensor.dtype = DType::kF32;
  tensor.shape = shape;
  tensor.begin = first.info.begin;
  tensor.end = first.info.begin + *bytes;
  tensor.file = first.info.file;
  tensor.reader = std::move(reader);
  added_.push_back({first.info.name, std::move(tensor)});
}

std::vector<TensorInfo> QuantizedWeights::finish() const {
  std::unordered_map<std::string_view, const TensorInfo*> places;
  for (const Added& added : added_) places.emplace(added.before, &added.tensor);
  std::vector<TensorInfo> tensors;
  for (const TensorInfo& tensor : checkpoint_->tensors()) {
    if (const auto place = places.find(tensor.name); place != places.end())
      tensors.push_back(*place->second);
    if (taken_.contains(tensor.name)) continue;
    const bool small = dtype_bits(tensor.dtype) <= 8 && tensor.dtype != DType::kBool;
    const auto is_end = [&](std::string_view ending) { return tensor.name.ends_with(ending); };
    if (small || std::ranges::any_of(kPartEndings, is_end)) {
      throw InputError(checkpoint_->path(),
                       fmt::format("'{}' ({}) is a part of a quantised weight, expected the other "
                                   "parts next to it: see quantization_config",
                                   escape(tensor.name), dtype_name(tensor.dtype)));
    }
    tensors.push_back(tensor);
    if (const auto first = taken_.find(tensor.alias_of);
        !tensor.alias_of.empty() && first != taken_.end())
      tensors.back().alias_of.clear();
  }
  return tensors;
}

void check_matrix(const StoredPart& part) {
  if (part.info.shape.size() == 2 && part.info.elements() > 0) return;
  throw part.error(fmt::format("shape {}, expected a matrix", shape_text(part.info.shape)));
}

// Grids of scales.

namespace {

class GridReader : public PieceReader {
 public:
  GridReader(StoredPart codes, StoredPart scales, std::optional<StoredPart> zeros,
             const ScaleGrid& grid, float factor, bool zero_is_legal,
             std::shared_ptr<PieceCache> cache)
      : PieceReader(codes.info.elements(), rows_of_piece(codes) * codes.info.shape[1],
                    std::move(cache)),
        codes_(std::move(codes)),
        scales_(std::move(scales)),
        zeros_(std::move(zeros)),
        grid_(grid),
        factor_(factor),
        zero_is_legal_(zero_is_legal) {}

 private:
  static std::uint64_t rows_of_piece(const StoredPart& codes) {
    return std::max<std::uint64_t>(1, kPieceElements / codes.info.shape[1]);
  }
  std::uint64_t columns() const { return codes_.info.shape[1]; }

  StoredPiece load(std::uint64_t piece) const override {
    const std::uint64_t first = piece * rows_of_piece(codes_);
    const std::uint64_t rows = std::min(rows_of_piece(codes_), codes_.info.shape[0] - first);
    StoredPiece stored;
    stored.codes.resize(rows * columns());
    codes_.read(first * columns(), stored.codes);
    const std::uint64_t begin = first / grid_.block_rows;
    const std::uint64_t end = (first + rows - 1) / grid_.block_rows + 1;
    stored.scales.resize((end - begin) * grid_.columns);
    scales_.read_scales(begin * grid_.columns, stored.scales, zero_is_legal_);
    if (zeros_) {
      stored.zeros.resize(stored.scales.size());
      zeros_->read_floats(begin * grid_.columns, stored.zeros);
    }
    return stored;
  }

  void decode(const StoredPiece& stored, std::uint64_t piece, std::uint64_t first,
              std::span<float> out) const override {
    to_float(codes_.info.dtype, Bytes(stored.codes).subspan(first, out.size()), out);
    const std::uint64_t piece_row = piece * rows_of_piece(codes_);
    const std::uint64_t begin = piece_row / grid_.block_rows;
    std::uint64_t row = piece_row + first / columns();
    std::uint64_t column = first % columns();
    std::size_t at = 0;
    while (at < out.size()) {
      const std::uint64_t block = column / grid_.block_columns;
      const std::uint64_t block_end = std::min((block + 1) * grid_.block_columns, columns());
      const std::size_t end = std::min<std::uint64_t>(out.size(), at + block_end - column);
      const std::uint64_t place = (row / grid_.block_rows - begin) * grid_.columns + block;
      const float scale = stored.scales[place];
      const float zero = stored.zeros.empty() ? 0 : stored.zeros[place];
      column += end - at;
      for (; at < end; ++at) out[at] = (out[at] - zero) * scale * factor_;
      if (column == columns()) {
        column = 0;
        ++row;
      }
    }
  }

  StoredPart codes_;
  StoredPart scales_;
  std::optional<StoredPart> zeros_;
  ScaleGrid grid_;
  float factor_;
  bool zero_is_legal_;
};

}  // namespace

std::shared_ptr<const TensorReader> grid_reader(StoredPart codes, StoredPart scales,
                                                std::optional<StoredPart> zeros,
                                                const ScaleGrid& grid, float factor,
                                                bool zero_is_legal,
                                                const std::shared_ptr<PieceCache>& cache) {
  return std::make_shared<GridReader>(std::move(codes), std::move(scales), std::move(zeros), grid,
                                      factor, zero_is_legal, cache);
}

}  // namespace masque::store
