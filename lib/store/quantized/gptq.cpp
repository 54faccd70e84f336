// GPTQ's and AWQ's files: integers packed into words, inputs as rows, scales and zero points for
// groups of inputs.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/quantized/quantized_weights.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kWordBits = 32;
constexpr std::uint64_t kAwqPack = 8;
/// Where AWQ has output j of eight: the number of its 4 bits in the word.
constexpr unsigned kAwqPlace[kAwqPack] = {0, 4, 1, 5, 2, 6, 3, 7};

/// What both schemes say of all weights.
struct WordFormat {
  unsigned bits = 4;
  std::int64_t group_size = -1;  ///< inputs of a group; −1: all
  bool along_outputs = false;    ///< AWQ: words hold outputs, not inputs
  float zero_offset = 0;         ///< added to stored zero points
  bool needs_groups = false;     ///< without g_idx the groups are not known
};

/// The parts of one weight.
struct WordParts {
  StoredPart codes;
  StoredPart zeros;
  StoredPart scales;
  std::optional<StoredPart> groups;
  std::uint64_t inputs = 0;
  std::uint64_t outputs = 0;
};

/// Number `index` of a row of words that are one stream of bits, `words` of `stride` apart.
unsigned stream_number(std::span<const std::uint32_t> words, std::size_t stride, std::size_t index,
                       unsigned bits) {
  const std::size_t bit = index * bits;
  const std::size_t word = bit / kWordBits;
  const unsigned shift = bit % kWordBits;
  std::uint64_t both = words[word * stride];
  if (shift + bits > kWordBits) both |= std::uint64_t{words[(word + 1) * stride]} << kWordBits;
  return static_cast<unsigned>(both >> shift) & ((1U << bits) - 1U);
}

/// A weight [outputs, inputs] in bands of outputs.
class WordReader : public PieceReader {
 public:
  WordReader(WordParts parts, const WordFormat& format, std::shared_ptr<PieceCache> cache)
      : PieceReader(parts.inputs * parts.outputs, band_of(parts) * parts.inputs, std::move(cache)),
        parts_(std::move(parts)),
        format_(format) {}

 private:
  /// Outputs of a piece: whole words of them.
  static std::uint64_t band_of(const WordParts& parts) {
    return std::max(kWordBits, kPieceElements / parts.inputs / kWordBits * kWordBits);
  }
  std::uint64_t groups() const { return parts_.scales.info.shape[0]; }
  std::uint64_t outputs_of(std::uint64_t piece) const {
    const std::uint64_t band = band_of(parts_);
    return std::min(band, parts_.outputs - piece * band);
  }

  /// Words of `part` [rows, …] that hold outputs from `first` on: `count` of each row.
  static std::vector<std::uint32_t> words_of(const StoredPart& part, std::uint64_t first,
                                             std::uint64_t count) {
    const std::uint64_t rows = part.info.shape[0];
    const std::uint64_t columns = part.info.shape[1];
    std::vector<std::uint32_t> words(rows * count);
    for (std::uint64_t row = 0; row < rows; ++row)
      part.read_words(row * columns + first, std::span(words).subspan(row * count, count));
    return words;
  }

  StoredPiece load(std::uint64_t piece) const override {
    const std::uint64_t first = piece * band_of(parts_);
    const std::uint64_t outputs = outputs_of(piece);
    StoredPiece stored;
    const std::uint64_t pack = format_.along_outputs ? kAwqPack : 1;
    stored.words = words_of(parts_.codes, first / pack, outputs / pack);
    stored.scales.resize(groups() * outputs);
    for (std::uint64_t group = 0; group < groups(); ++group)
      parts_.scales.read_scales(group * parts_.outputs + first,
                                std::span(stored.scales).subspan(group * outputs, outputs), false);
    stored.zeros = zeros_of(first, outputs);
    stored.groups = groups_of();
    return stored;
  }

  std::vector<float> zeros_of(std::uint64_t first, std::uint64_t outputs) const {
    const unsigned bits = format_.bits;
    // Outputs of a band begin and end with words.
    const std::uint64_t width = divide_up(outputs * bits, kWordBits);
    const auto words = words_of(parts_.zeros, first * bits / kWordBits, width);
    std::vector<float> zeros(groups() * outputs);
    for (std::uint64_t group = 0; group < groups(); ++group) {
      const auto row = std::span(words).subspan(group * width, width);
      for (std::uint64_t output = 0; output < outputs; ++output) {
        const std::uint64_t place =
            format_.along_outputs ? output / kAwqPack * kAwqPack + kAwqPlace[output % kAwqPack]
                                  : output;
        const unsigned zero = stream_number(row, 1, place, bits);
        if (format_.zero_offset != 0 && zero + 1 == 1U << bits) {
          throw parts_.zeros.error(fmt::format(
              "zero point {} of output {} is {}, expected less: it stands for one more, "
              "which {} bits do not hold, and programs differ there",
              group, first + output, zero, bits));
        }
        zeros[group * outputs + output] = static_cast<float>(zero) + format_.zero_offset;
      }
    }
    return zeros;
  }

  std::vector<std::uint32_t> groups_of() const {
    std::vector<std::uint32_t> of_input(parts_.inputs);
    if (!parts_.groups) {
      const std::uint64_t size = divide_up(parts_.inputs, groups());
      for (std::uint64_t i = 0; i < parts_.inputs; ++i)
        of_input[i] = static_cast<std::uint32_t>(i / size);
      return of_input;
    }
    parts_.groups->read_words(0, of_input);
    for (std::uint64_t i = 0; i < parts_.inputs; ++i) {
      if (of_input[i] < groups()) continue;
      throw parts_.groups->error(fmt::format("input {} is in group {}, expected 0 to {}", i,
                                             static_cast<std::int32_t>(of_input[i]), groups() - 1));
    }
    return of_input;
  }

  void decode(const StoredPiece& stored, std::uint64_t piece, std::uint64_t first,
              std::span<float> out) const override {
    const std::uint64_t outputs = outputs_of(piece);
    const std::span words(stored.words);
    std::uint64_t output = first / parts_.inputs;
    std::uint64_t input = first % parts_.inputs;
    for (float& number : out) {
      unsigned code = 0;
      if (format_.along_outputs) {
        const std::uint32_t word = words[(input * outputs + output) / kAwqPack];
        code = word >> (kAwqPlace[output % kAwqPack] * 4) & 15U;
      } else {
        code = stream_number(words.subspan(output), outputs, input, format_.bits);
      }
      const std::uint64_t place = stored.groups[input] * outputs + output;
      number = (static_cast<float>(code) - stored.zeros[place]) * stored.scales[place];
      if (++input == parts_.inputs) {
        input = 0;
        ++output;
      }
    }
  }

  WordParts parts_;
  WordFormat format_;
};

void add_words(QuantizedWeights& weights, const std::string& stem, const std::string& codes_name,
               const WordFormat& format) {
  const std::string name = stem + ".weight";
  WordParts parts{.codes = weights.need(codes_name, name),
                  .zeros = weights.need(stem + ".qzeros", name),
                  .scales = weights.need(stem + ".scales", name),
                  .groups = weights.take(stem + ".g_idx")};
  QuantizedWeights::check_type(parts.codes, {DType::kI32});
  QuantizedWeights::check_type(parts.zeros, {DType::kI32});
  QuantizedWeights::check_type(parts.scales, {DType::kF16, DType::kBF16, DType::kF32});
  check_matrix(parts.codes);
  const Shape& shape = parts.codes.info.shape;
  const std::uint64_t bits = format.bits;
  if (!format.along_outputs && shape[0] * kWordBits % bits != 0)
    throw parts.codes.error(fmt::format("shape {}, expected rows of whole numbers of {} bits",
                                        shape_text(shape), bits));
  parts.inputs = format.along_outputs ? shape[0] : shape[0] * kWordBits / bits;
  parts.outputs = format.along_outputs ? shape[1] * kAwqPack : shape[1];
  if (parts.outputs * bits % kWordBits != 0)
    throw parts.codes.error(
        fmt::format("{} outputs, expected whole words of zero points", parts.outputs));
  const std::uint64_t size =
      format.group_size < 0 ? parts.inputs : static_cast<std::uint64_t>(format.group_size);
  const std::uint64_t groups = divide_up(parts.inputs, size);
  QuantizedWeights::check_shape(parts.scales, {groups, parts.outputs});
  QuantizedWeights::check_shape(parts.zeros, {groups, parts.outputs * bits / kWordBits});
  if (parts.groups) {
    QuantizedWeights::check_type(*parts.groups, {DType::kI32});
    QuantizedWeights::check_shape(*parts.groups, {parts.inputs});
  } else if (format.needs_groups || parts.inputs % size != 0) {
    weights.need(stem + ".g_idx", name);
  }
  const Shape decoded{parts.outputs, parts.inputs};
  const StoredPart first = parts.codes;
  weights.add(name, decoded,
              std::make_shared<WordReader>(std::move(parts), format, weights.cache()), first);
}

/// How the numbers were found, which the numbers do not depend on.
void ignore_calibration(JsonSettings& settings) {
  settings.ignore({"damp_percent",
                   "damp_auto_increment",
                   "true_sequential",
                   "meta",
                   "act_group_aware",
                   "model_name_or_path",
                   "model_file_base_name",
                   "dataset",
                   "batch_size",
                   "block_name_to_quantize",
                   "module_name_preceding_first_block",
                   "modules_in_block_to_quantize",
                   "pad_token_id",
                   "tokenizer",
                   "model_seqlen",
                   "max_input_length",
                   "cache_block_outputs",
                   "backend",
                   "sym",
                   "modules_to_not_convert"});
}

std::int64_t group_size_of(JsonSettings& settings) {
  const char* key = "group_size";
  const JsonValue* value = settings.find(key);
  if (value == nullptr) return 128;
  if (value->is(JsonKind::kNumber) && value->number() == -1) return -1;
  return settings.integer(key, 1, std::int64_t{1} << 31).value();
}

}  // namespace

std::string decode_gptq(JsonSettings& settings, QuantizedWeights& weights) {
  ignore_calibration(settings);
  settings.ignore({"static_groups", "lm_head", "use_cuda_fp16", "use_exllama", "disable_exllama",
                   "exllama_config"});
  const auto bits = settings.integer("bits", 2, 8);
  if (!bits || (*bits != 2 && *bits != 3 && *bits != 4 && *bits != 8))
    settings.refuse("bits", "2, 3, 4 or 8");
  settings.need("pack_dtype", "int32");
  if (settings.flag("is_marlin_format", false)) settings.refuse("is_marlin_format", "false");
  std::string format = "gptq";
  for (const char* key : {"format", "checkpoint_format"}) {
    const auto given = settings.string(key);
    if (!given) continue;
    if (*given != "gptq" && *given != "gptq_v2") settings.refuse(key, "'gptq' or 'gptq_v2'");
    format = *given;
  }
  const WordFormat words{.bits = static_cast<unsigned>(*bits),
                         .group_size = group_size_of(settings),
                         .along_outputs = false,
                         .zero_offset = format == "gptq" ? 1.0F : 0.0F,
                         .needs_groups = settings.flag("desc_act", false)};
  for (const auto& [stem, codes] : weights.ending_with(".qweight"))
    add_words(weights, stem, codes->name, words);
  return "";
}

std::string decode_awq(JsonSettings& settings, QuantizedWeights& weights) {
  ignore_calibration(settings);
  settings.ignore({"do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config"});
  if (settings.flag("desc_act", false)) settings.refuse("desc_act", "false");
  const auto bits = settings.integer("bits", 4, 4);
  if (!bits && settings.integer("w_bit", 4, 4).value_or(4) != 4) settings.refuse("bits", "4");
  if (!settings.flag("zero_point", true)) settings.refuse("zero_point", "true");
  for (const char* key : {"version", "format", "checkpoint_format"}) {
    const auto given = settings.string(key);
    if (given && *given != "gemm" && *given != "GEMM") settings.refuse(key, "'gemm'");
  }
  const WordFormat words{.bits = 4, .group_size = group_size_of(settings), .along_outputs = true};
  for (const auto& [stem, codes] : weights.ending_with(".qweight"))
    add_words(weights, stem, codes->name, words);
  return "";
}

}  // namespace masque::store
