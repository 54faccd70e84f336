// bitsandbytes: 4 bits with a table of numbers and a scale for a block, 8 bits with one for a row.
#include <algorithm>
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

constexpr std::uint64_t kMostStateBytes = 1 << 16;
constexpr std::int64_t kMostBlockSize = 4096;

/// Scales that are quantised once more.
struct NestedScales {
  StoredPart scales;             ///< of blocks of codes
  std::vector<float> numbers;    ///< of a code
  std::uint64_t block_size = 0;  ///< codes of a block
  float offset = 0;              ///< added to each
};

/// Numbers of 4 bits, the first of a pair in the upper half of its byte, in blocks that go on
/// beyond rows.
class FourBitReader : public PieceReader {
 public:
  FourBitReader(StoredPart codes, StoredPart scales, std::uint64_t elements,
                std::uint64_t block_size, std::vector<float> numbers,
                std::optional<NestedScales> nested, std::shared_ptr<PieceCache> cache)
      : PieceReader(elements, kPieceElements, std::move(cache)),
        codes_(std::move(codes)),
        scales_(std::move(scales)),
        elements_(elements),
        block_size_(block_size),
        numbers_(std::move(numbers)),
        nested_(std::move(nested)) {}

 private:
  StoredPiece load(std::uint64_t piece) const override {
    const std::uint64_t first = piece * kPieceElements;
    const std::uint64_t count = std::min(kPieceElements, elements_ - first);
    StoredPiece stored;
    stored.codes.resize(divide_up(count, std::uint64_t{2}));
    codes_.read(first / 2, stored.codes);
    stored.scales.resize(divide_up(count, block_size_));
    const std::uint64_t block = first / block_size_;
    if (!nested_) {
      // The scale of a block of zeros is 0.
      scales_.read_scales(block, stored.scales, true);
      return stored;
    }
    scales_.read_floats(block, stored.scales);
    const std::uint64_t begin = block / nested_->block_size;
    const std::uint64_t end = (block + stored.scales.size() - 1) / nested_->block_size + 1;
    std::vector<float> outer(end - begin);
    nested_->scales.read_scales(begin, outer, true);
    for (std::size_t i = 0; i < stored.scales.size(); ++i) {
      const float number = nested_->numbers[static_cast<std::size_t>(stored.scales[i])];
      stored.scales[i] =
          number * outer[(block + i) / nested_->block_size - begin] + nested_->offset;
    }
    return stored;
  }

  void decode(const StoredPiece& stored, std::uint64_t /*piece*/, std::uint64_t first,
              std::span<float> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t at = first + i;
      const auto pair = static_cast<unsigned>(stored.codes[at / 2]);
      out[i] = numbers_[at % 2 == 0 ? pair >> 4U : pair & 15U] * stored.scales[at / block_size_];
    }
  }

  StoredPart codes_;
  StoredPart scales_;
  std::uint64_t elements_;
  std::uint64_t block_size_;
  std::vector<float> numbers_;
  std::optional<NestedScales> nested_;
};

/// The table `part` of `count` numbers.
std::vector<float> number_table(const StoredPart& part, std::uint64_t count) {
  QuantizedWeights::check_type(part, {DType::kF32});
  QuantizedWeights::check_shape(part, {count});
  std::vector<float> numbers(count);
  part.read_scales(0, numbers, true);
  return numbers;
}

/// A size of blocks: a power of two, so that pieces end where blocks do.
std::uint64_t block_size_of(JsonSettings& state, const char* key) {
  const auto size = state.integer(key, 1, kMostBlockSize);
  if (!size || (*size & (*size - 1)) != 0)
    state.refuse(key, fmt::format("a power of two up to {}", kMostBlockSize));
  return static_cast<std::uint64_t>(*size);
}

Shape shape_of(JsonSettings& state) {
  const char* key = "shape";
  const JsonValue* value = state.find(key);
  Shape shape;
  if (value == nullptr || !value->is(JsonKind::kArray))
    state.refuse(key, "a list of whole numbers");
  for (const JsonValue& item : value->items) {
    if (!item.integer() || *item.integer() == 0) state.refuse(key, "whole numbers from 1");
    shape.push_back(*item.integer());
  }
  const auto elements = element_count(shape);
  if (!elements || *elements > std::numeric_limits<std::int64_t>::max() / 8)
    state.refuse(key, "fewer elements");
  return shape;
}

void refuse_unknown_state(JsonSettings& state, const StoredPart& part) {
  const auto unknown = state.unknown();
  if (unknown.empty()) return;
  throw part.error(
      fmt::format("'{}', expected none but what is known: what it changes is not "
                  "understood",
                  escape(unknown.front())));
}

void add_four_bits(QuantizedWeights& weights, const std::string& name, const std::string& type,
                   const std::string& state_name) {
  const StoredPart stored = *weights.take(state_name);
  QuantizedWeights::check_type(stored, {DType::kU8});
  if (stored.info.bytes() > kMostStateBytes)
    throw stored.error(
        fmt::format("{} bytes, expected at most {}", stored.info.bytes(), kMostStateBytes));
  std::string text(stored.info.bytes(), '\0');
  stored.read(0, std::as_writable_bytes(std::span(text)));
  const std::string path = fmt::format("{}: {}", stored.file->path(), state_name);
  JsonSettings state(parse_json_file(text, path), path);
  state.need("quant_type", type);
  state.ignore({"dtype", "nested_dtype"});  // what is computed with
  const Shape shape = shape_of(state);
  const std::uint64_t elements = *element_count(shape);
  const std::uint64_t block_size = block_size_of(state, "blocksize");
  StoredPart codes = weights.need(name, name);
  if (codes.info.bytes() != divide_up(elements, std::uint64_t{2}))
    throw codes.error(fmt::format("{} bytes, expected {} for shape {}", codes.info.bytes(),
                                  divide_up(elements, std::uint64_t{2}), shape_text(shape)));
  StoredPart scales = weights.need(name + ".absmax", name);
  const std::uint64_t blocks = divide_up(elements, block_size);
  QuantizedWeights::check_shape(scales, {blocks});
  std::vector<float> numbers = number_table(weights.need(name + ".quant_map", name), 16);
  std::optional<NestedScales> nested;
  if (state.find("nested_blocksize") != nullptr) {
    QuantizedWeights::check_type(scales, {DType::kU8});
    nested = NestedScales{weights.need(name + ".nested_absmax", name),
                          number_table(weights.need(name + ".nested_quant_map", name), 256),
                          block_size_of(state, "nested_blocksize"), 0};
    QuantizedWeights::check_type(nested->scales, {DType::kF32});
    QuantizedWeights::check_shape(nested->scales, {divide_up(blocks, nested->block_size)});
    const JsonValue* offset = state.find("nested_offset");
    if (offset == nullptr || !offset->number()) state.refuse("nested_offset", "a number");
    nested->offset = static_cast<float>(*offset->number());
  } else {
    QuantizedWeights::check_type(scales, {DType::kF32});
  }
  refuse_unknown_state(state, stored);
  const StoredPart first = codes;
  weights.add(
      name, shape,
      std::make_shared<FourBitReader>(std::move(codes), std::move(scales), elements, block_size,
                                      std::move(numbers), std::move(nested), weights.cache()),
      first);
}

void add_eight_bits(QuantizedWeights& weights, const std::string& stem,
                    const std::string& scale_name) {
  const std::string name = stem + ".weight";
  StoredPart scales = *weights.take(scale_name);
  StoredPart codes = weights.need(name, scale_name);
  QuantizedWeights::check_type(codes, {DType::kI8});
  check_matrix(codes);
  QuantizedWeights::check_type(scales, {DType::kF32});
  const std::uint64_t rows = codes.info.shape[0];
  QuantizedWeights::check_shape(scales, {rows});
  if (const auto format = weights.take(name + "_format")) {
    QuantizedWeights::check_type(*format, {DType::kU8});
    std::vector<float> number(1);
    if (format->info.elements() == 1) format->read_floats(0, number);
    if (format->info.elements() != 1 || number[0] != 0)
      throw format->error("another order than rows, expected 0: others are not supported");
  }
  const Shape shape = codes.info.shape;
  const StoredPart first = codes;
  const ScaleGrid grid{1, shape[1], rows, 1};
  // The largest code is 127; a row of zeros has the scale 0.
  weights.add(name, shape,
              grid_reader(std::move(codes), std::move(scales), std::nullopt, grid,
                          7.874015718698502e-3F, true, weights.cache()),
              first);
}

}  // namespace

std::string decode_bitsandbytes(JsonSettings& settings, QuantizedWeights& weights) {
  settings.ignore({"_load_in_4bit", "_load_in_8bit", "load_in_4bit", "load_in_8bit",
                   "llm_int8_skip_modules", "llm_int8_enable_fp32_cpu_offload",
                   "llm_int8_threshold", "bnb_4bit_compute_dtype", "bnb_4bit_use_double_quant",
                   "bnb_4bit_quant_storage"});
  if (settings.flag("llm_int8_has_fp16_weight", false))
    settings.refuse("llm_int8_has_fp16_weight", "false");
  const std::string type = settings.string("bnb_4bit_quant_type").value_or("fp4");
  if (type != "nf4" && type != "fp4") settings.refuse("bnb_4bit_quant_type", "'nf4' or 'fp4'");
  for (const std::string kind : {"nf4", "fp4"}) {
    const std::string ending = ".quant_state.bitsandbytes__" + kind;
    for (const auto& [name, state] : weights.ending_with(ending)) {
      if (kind != type)
        settings.refuse("bnb_4bit_quant_type",
                        fmt::format("'{}', the type of '{}'", kind, escape(name)));
      add_four_bits(weights, name, kind, state->name);
    }
  }
  const auto eight = weights.ending_with(".SCB");
  for (const auto& [stem, scales] : eight) add_eight_bits(weights, stem, scales->name);
  return eight.empty() ? "" : "LLM.int8 rounds activations to 8 bits, too, which is not done here";
}

}  // namespace masque::store
