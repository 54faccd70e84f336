#include "store/gguf/gguf_model.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/name_list.hpp"
#include "base/string/parse_number.hpp"
#include "store/gguf/gguf_architecture.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "tensor/convert.hpp"
#include "tensor/quantized_block.hpp"

namespace masque::store {

namespace {

/// Keys that are compared with what follows from others, or read apart.
constexpr std::string_view kOtherKeys =
    "attention.value_length rope.dimension_count rope.scaling.type rope.scaling.factor "
    "rope.scaling.original_context_length rope.scaling.attn_factor rope.scaling.finetuned "
    "attention.causal expert_count expert_used_count";

/// The architecture of `checkpoint`. Throws InputError for one that is not in the table.
const GgufArchitecture& need_architecture(const Checkpoint& checkpoint) {
  check_whole_gguf(checkpoint);
  const TypedValue* value = find_gguf_value(checkpoint, kGgufArchitecture);
  const std::string name = value == nullptr ? "" : value->text;
  if (const GgufArchitecture* found = find_gguf_architecture(name)) return *found;
  throw InputError(checkpoint.path(), fmt::format("{} is \"{}\", expected {}", kGgufArchitecture,
                                                  escape(name), gguf_architectures()));
}

// The config.

/// Writes what the metadata of a checkpoint say in the words of transformers.
class ConfigWriter {
 public:
  explicit ConfigWriter(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), architecture_(need_architecture(checkpoint)) {}

  ModelConfig run() && {
    json_.begin_object().member("model_type", architecture_.model_type);
    json_.key("architectures").begin_array().value(architecture_.class_name).end_array();
    json_.member("vocab_size", rows_of(kGgufTokenTable));
    json_.member("tie_word_embeddings", !has("output.weight"));
    write_keys();
    write_heads();
    write_angles();
    write_tokens();
    json_.end_object();
    return ModelConfig::parse(std::move(text_), checkpoint_.path());
  }

 private:
  std::string full(std::string_view key) const {
    return fmt::format("{}.{}", architecture_.name, key);
  }
  [[noreturn]] void refuse(std::string_view key, std::string_view value,
                           std::string_view expected) const {
    throw InputError(checkpoint_.path(),
                     fmt::format("{} is {}, expected {}", key, escape(value), expected));
  }
  const TypedValue* find(std::string_view key) const {
    return find_gguf_value(checkpoint_, full(key));
  }
  std::optional<std::uint64_t> whole(std::string_view key) const {
    const TypedValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = gguf_integer(*value);
    if (!number) refuse(value->key, value->text, "a whole number");
    return number;
  }
  bool has(std::string_view tensor) const {
    const std::string name(tensor);
    return checkpoint_.find(name) != nullptr || checkpoint_.find_opaque(name) != nullptr;
  }
  std::uint64_t rows_of(std::string_view tensor) const {
    const std::string name(tensor);
    const TensorInfo* info = checkpoint_.find(name);
    const Shape& shape = info != nullptr ? info->shape : checkpoint_.find_opaque(name)->shape;
    return shape.size() == 2 ? shape[0] : 0;
  }

  /// Every key of the architecture: known, or refused.
  void write_keys() {
    const std::string prefix = full("");
    for (const WeightsFile& file : checkpoint_.files()) {
      for (const TypedValue& value : file.content.typed) {
        if (!value.key.starts_with(prefix)) continue;
        const std::string_view own = std::string_view(value.key).substr(prefix.size());
        const GgufConfigKey* known = nullptr;
        for (const std::span<const GgufConfigKey> keys :
             {architecture_.sizes, architecture_.keys}) {
          const auto found = std::ranges::find(keys, own, &GgufConfigKey::own);
          if (found != keys.end()) known = &*found;
        }
        if (known == nullptr) {
          if (!has_word(kOtherKeys, own))
            refuse(value.key, value.text, "no key of this name: what it changes is not known");
          continue;
        }
        if (known->name.empty()) continue;
        if (value.json.empty() || value.json.front() == '[')
          refuse(value.key, value.text, "one number for all layers");
        // A fraction of transformers' classes is spelled as one.
        const bool bare = value.type.starts_with("FLOAT") &&
                          value.json.find_first_not_of("-0123456789") == std::string::npos;
        json_.key(known->name).raw(bare ? value.json + ".0" : value.json);
      }
    }
    if (!architecture_.activation.empty())
      json_.member("hidden_activation", architecture_.activation);
  }

  Index head_size() const {
    if (const auto size = whole("attention.key_length")) return static_cast<Index>(*size);
    const auto hidden = whole("embedding_length"), heads = whole("attention.head_count");
    return hidden && heads && *heads > 0 ? static_cast<Index>(*hidden / *heads) : 0;
  }

  void write_heads() {
    for (const std::string_view key : {"expert_count", "expert_used_count"}) {
      if (const auto count = whole(key); count && *count > 0)
        refuse(full(key), fmt::format("{}", *count), "0: experts of GGUF files are not read");
    }
    const Index size = head_size();
    if (const auto value = whole("attention.value_length");
        value && static_cast<Index>(*value) != size)
      refuse(full("attention.value_length"), fmt::format("{}", *value),
             fmt::format("{}, the length of keys", size));
    if (const TypedValue* causal = find("attention.causal");
        causal != nullptr && causal->text != "true")
      refuse(causal->key, causal->text, "true");
    const auto rotated = whole("rope.dimension_count");
    if (rotated && static_cast<Index>(*rotated) != size) {
      if (architecture_.name != "phi3" || size == 0)
        refuse(full("rope.dimension_count"), fmt::format("{}", *rotated),
               fmt::format("{}, the length of keys", size));
      json_.member("partial_rotary_factor",
                   static_cast<double>(*rotated) / static_cast<double>(size));
    }
    // llama.cpp knows the models that divide by another root by their number of layers.
    if (architecture_.name == "gemma2" || architecture_.name == "gemma3") {
      const auto layers = whole("block_count"), hidden = whole("embedding_length"),
                 heads = whole("attention.head_count");
      const bool largest = layers == (architecture_.name == "gemma2" ? 46 : 62);
      json_.member("query_pre_attn_scalar",
                   largest && hidden && heads && *heads > 0
                       ? static_cast<double>(*hidden) / static_cast<double>(*heads)
                       : static_cast<double>(size));
    }
  }

  std::vector<float> numbers_of(std::string_view tensor) const {
    const TensorInfo& info = checkpoint_.get(std::string(tensor));
    // As many as pairs of features of a head.
    constexpr std::uint64_t kMost = 1 << 14;
    if (info.dtype != DType::kF32 || info.elements() > kMost)
      throw InputError(checkpoint_.path(),
                       fmt::format("{}: {} {}, expected at most {} of F32", tensor,
                                   dtype_name(info.dtype), shape_text(info.shape), kMost));
    std::vector<float> numbers(info.elements());
    checkpoint_.read(info, 0, std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }
  void write_numbers(std::string_view key, std::string_view tensor) {
    json_.key(key).begin_array();
    for (const float number : numbers_of(tensor)) json_.value(static_cast<double>(number));
    json_.end_array();
  }

  void write_angles() {
    const TypedValue* type = find("rope.scaling.type");
    const std::string kind = type == nullptr ? "none" : type->text;
    const bool factors = has(kGgufFrequencies),
               two = has(kGgufShortFactors) || has(kGgufLongFactors);
    if (kind == "none" && !factors && !two) return;
    json_.key("rope_scaling").begin_object();
    if (factors || two) {
      // One list of factors is the same for short and long texts.
      if (kind != "none" && kind != "longrope")
        refuse(type->key, kind, "none or longrope next to factors of the angles");
      json_.member("rope_type", "longrope");
      write_numbers("short_factor", factors ? kGgufFrequencies : kGgufShortFactors);
      write_numbers("long_factor", factors ? kGgufFrequencies : kGgufLongFactors);
      if (factors) json_.member("attention_factor", 1.0);
    } else if (kind == "linear" || kind == "yarn") {
      json_.member("rope_type", kind);
    } else {
      refuse(type->key, kind, "none, linear, yarn or longrope");
    }
    for (const auto& [own, name] :
         {std::pair("rope.scaling.factor", "factor"),
          std::pair("rope.scaling.attn_factor", "attention_factor"),
          std::pair("rope.scaling.original_context_length", "original_max_position_embeddings")}) {
      const TypedValue* value = find(own);
      if (value != nullptr && !value->json.empty() && !factors) json_.key(name).raw(value->json);
    }
    json_.end_object();
    // Phi-3's class has it outside, with a length of its own where it is not there.
    const TypedValue* original = find("rope.scaling.original_context_length");
    if (architecture_.name == "phi3" && original != nullptr && !original->json.empty())
      json_.key("original_max_position_embeddings").raw(original->json);
  }

  void write_tokens() {
    for (const auto& [own, name] : {std::pair("bos", "bos_token_id"), {"eos", "eos_token_id"}}) {
      const TypedValue* value =
          find_gguf_value(checkpoint_, fmt::format("tokenizer.ggml.{}_token_id", own));
      if (value != nullptr && !value->json.empty()) json_.key(name).raw(value->json);
    }
    const TypedValue* pad = find_gguf_value(checkpoint_, "tokenizer.ggml.padding_token_id");
    json_.key("pad_token_id").raw(pad == nullptr || pad->json.empty() ? "null" : pad->json);
  }

  const Checkpoint& checkpoint_;
  const GgufArchitecture& architecture_;
  std::string text_;
  JsonWriter json_{text_};
};

// The tensors.

/// Floats of a tensor with rows in another order, less a number, decoded from numbers or blocks.
class DecodedTensor : public TensorReader {
 public:
  /// The source of a tensor.
  struct Source {
    std::uint64_t begin = 0;              ///< first byte in the file
    DType dtype = DType::kF32;            ///< without `blocks`
    const BlockFormat* blocks = nullptr;  ///< of a quantised one
    std::uint64_t elements = 0;           ///< of all
    std::uint64_t columns = 0;            ///< elements of a row
    std::uint64_t head_rows = 0;          ///< rows of a head whose pairs are neighbours; 0: none
    float less = 0;                       ///< what is subtracted
  };
  explicit DecodedTensor(const Source& source) : source_(source) {
    // One long row, if rows stay where they are.
    if (source_.head_rows == 0) source_.columns = source_.elements;
  }

  void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const override {
    MASQUE_CHECK(offset % sizeof(float) == 0 && out.size() % sizeof(float) == 0);
    std::vector<float> numbers;
    for (std::uint64_t at = offset / sizeof(float), end = at + out.size() / sizeof(float);
         at < end;) {
      const std::uint64_t column = at % source_.columns;
      const std::uint64_t count = std::min({end - at, source_.columns - column, kPiece});
      numbers.resize(count);
      decode(file, stored_row(at / source_.columns) * source_.columns + column, numbers);
      for (float& number : numbers) number -= source_.less;
      const auto bytes = std::as_bytes(std::span(numbers));
      std::ranges::copy(bytes,
                        out.begin() + static_cast<std::ptrdiff_t>(at * sizeof(float) - offset));
      at += count;
    }
  }

 private:
  static constexpr std::uint64_t kPiece = 1 << 16;

  /// The row of the file that has row `row`: of a head those of its first half stand at even
  /// places, those of its second half at odd ones.
  std::uint64_t stored_row(std::uint64_t row) const {
    if (source_.head_rows == 0) return row;
    const std::uint64_t in_head = row % source_.head_rows, half = source_.head_rows / 2;
    return row - in_head + 2 * (in_head % half) + in_head / half;
  }

  /// `out` ← elements of the file from `first` on.
  void decode(const InputFile& file, std::uint64_t first, std::span<float> out) const {
    if (source_.blocks == nullptr) {
      const std::uint64_t width = dtype_bits(source_.dtype) / 8;
      std::vector<std::byte> bytes(out.size() * width);
      file.read(source_.begin + first * width, bytes);
      return to_float(source_.dtype, bytes, out);
    }
    const BlockFormat& format = *source_.blocks;
    const std::uint64_t block = first / format.elements;
    const std::uint64_t blocks = divide_up(first + out.size(), format.elements) - block;
    std::vector<std::byte> bytes(blocks * format.bytes);
    std::vector<float> numbers(blocks * format.elements);
    file.read(source_.begin + block * format.bytes, bytes);
    decode_blocks(format, bytes, numbers);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(first - block * format.elements),
                out.size(), out.begin());
  }

  Source source_;
};

/// Collects the tensors of a checkpoint.
class TensorCollector {
 public:
  explicit TensorCollector(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), architecture_(need_architecture(checkpoint)) {}

  std::map<std::string, TensorInfo> run() && {
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      const GgufTensorName* known = find(tensor.name);
      if (known == nullptr) continue;
      if (known->change == GgufChange::kNone) {
        add(*known, tensor.name, tensor);
      } else {
        add(*known, tensor.name,
            decoded(*known, tensor.name, tensor.shape, tensor.file,
                    {.begin = tensor.begin, .dtype = tensor.dtype}));
      }
    }
    for (const OpaqueTensor& tensor : checkpoint_.opaque()) {
      const GgufTensorName* known = find(tensor.name);
      if (known == nullptr) continue;
      const BlockFormat* blocks = find_block_format(tensor.type);
      if (blocks == nullptr)
        throw InputError(checkpoint_.path(),
                         fmt::format("tensor '{}' has type {}, expected one whose blocks are "
                                     "decoded: {}",
                                     escape(tensor.name), tensor.type, block_names()));
      add(*known, tensor.name,
          decoded(*known, tensor.name, tensor.shape, tensor.file,
                  {.begin = tensor.begin, .blocks = blocks}));
    }
    return std::move(tensors_);
  }

 private:
  static std::string block_names() {
    std::vector<std::string_view> names;
    for (const BlockFormat& format : block_formats()) names.push_back(format.name);
    return or_list(names);
  }

  /// The row of `name`; nullptr for those that the config has instead.
  const GgufTensorName* find(const std::string& name) const {
    if (name == kGgufFrequencies || name == kGgufLongFactors || name == kGgufShortFactors)
      return nullptr;
    const std::string_view layer = gguf_layer_of(name);
    for (const GgufTensorName& row : architecture_.tensors) {
      if (gguf_with_layer(row.own, layer) == name) return &row;
    }
    throw InputError(checkpoint_.path(),
                     fmt::format("tensor '{}' is not known, expected those of architecture {}",
                                 escape(name), architecture_.name));
  }

  void add(const GgufTensorName& row, const std::string& own, TensorInfo tensor) {
    tensors_.emplace(gguf_with_layer(row.name, gguf_layer_of(own)), std::move(tensor));
  }

  std::uint64_t heads(GgufChange change) const {
    const auto count = [&](std::string_view key) {
      const TypedValue* value =
          find_gguf_value(checkpoint_, fmt::format("{}.{}", architecture_.name, key));
      return value == nullptr ? std::nullopt : gguf_integer(*value);
    };
    const auto all = count("attention.head_count");
    return (change == GgufChange::kKeyRows ? count("attention.head_count_kv") : all)
        .value_or(all.value_or(0));
  }

  TensorInfo decoded(const GgufTensorName& row, const std::string& name, const Shape& shape,
                     std::size_t file, DecodedTensor::Source source) const {
    source.elements = element_count(shape).value_or(0);
    const std::uint64_t rows = shape.empty() ? 1 : shape[0];
    source.columns = rows == 0 ? 0 : source.elements / rows;
    if (row.change == GgufChange::kPlusOne) source.less = 1;
    if (row.change == GgufChange::kQueryRows || row.change == GgufChange::kKeyRows) {
      const std::uint64_t count = heads(row.change);
      if (count == 0 || rows % count != 0 || rows / count % 2 != 0)
        throw InputError(checkpoint_.path(),
                         fmt::format("{}: {} rows, expected an even number for each of {} heads",
                                     escape(name), rows, count));
      source.head_rows = rows / count;
    }
    TensorInfo info;
    info.name = name;
    info.dtype = DType::kF32;
    info.shape = shape;
    info.end = source.elements * sizeof(float);
    info.file = file;
    info.reader = std::make_shared<DecodedTensor>(source);
    return info;
  }

  const Checkpoint& checkpoint_;
  const GgufArchitecture& architecture_;
  std::map<std::string, TensorInfo> tensors_;
};

}  // namespace

std::optional<ModelConfig> gguf_config(const Checkpoint& checkpoint) {
  if (!has_gguf_names(checkpoint)) return std::nullopt;
  return ConfigWriter(checkpoint).run();
}

std::map<std::string, TensorInfo> gguf_tensors(const Checkpoint& checkpoint) {
  return TensorCollector(checkpoint).run();
}

bool is_transposed_in_gguf(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  return tensor.shape.size() == 2 && !gguf_layer_of(tensor.name).empty() &&
         need_architecture(checkpoint).transposes;
}

std::string gguf_own_name(const Checkpoint& checkpoint, const std::string& name) {
  if (!has_gguf_names(checkpoint)) return name;
  for (const GgufTensorName& row : need_architecture(checkpoint).tensors) {
    const std::size_t at = row.name.find("{l}");
    if (at == std::string_view::npos) {
      if (row.name == name) return std::string(row.own);
      continue;
    }
    if (!name.starts_with(row.name.substr(0, at))) continue;
    const std::string_view rest = std::string_view(name).substr(at);
    const std::string_view layer = rest.substr(0, rest.find('.'));
    if (gguf_with_layer(row.name, layer) == name) return gguf_with_layer(row.own, layer);
  }
  return name;
}

bool runs_gguf(const Checkpoint& checkpoint) {
  const TypedValue* value = find_gguf_value(checkpoint, kGgufArchitecture);
  return has_gguf_names(checkpoint) && value != nullptr &&
         find_gguf_architecture(value->text) != nullptr;
}

}  // namespace masque::store
