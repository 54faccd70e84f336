#include "store/gguf/gguf_model.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/name_list.hpp"
#include "base/string/parse_number.hpp"
#include "store/gguf/gguf_architecture.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/gguf/gguf_readers.hpp"
#include "tensor/quantized_block.hpp"

namespace masque::store {

namespace {

/// Keys that are compared with what follows from others, or read apart.
constexpr std::string_view kOtherKeys =
    "attention.value_length rope.dimension_count rope.scaling.type rope.scaling.factor "
    "rope.scaling.original_context_length rope.scaling.attn_factor rope.scaling.finetuned "
    "rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow attention.causal expert_count "
    "expert_used_count expert_feed_forward_length expert_shared_feed_forward_length";

constexpr const char* kTokenTypes = "token_types.weight";

/// The whole number that `checkpoint` has under `key` after the name of its `architecture`; nothing
/// without the key. Throws InputError for another kind of value.
std::optional<std::uint64_t> whole_of(const Checkpoint& checkpoint, std::string_view architecture,
                                      std::string_view key) {
  const TypedValue* value = find_gguf_value(checkpoint, fmt::format("{}.{}", architecture, key));
  if (value == nullptr) return std::nullopt;
  if (const auto number = gguf_integer(*value)) return number;
  throw InputError(checkpoint.path(), fmt::format("{} is {}, expected a whole number", value->key,
                                                  escape(value->text)));
}

/// The architecture of `checkpoint`. Throws InputError for one that is not in the table.
const GgufArchitecture& need_architecture(const Checkpoint& checkpoint) {
  check_whole_gguf(checkpoint);
  const TypedValue* value = find_gguf_value(checkpoint, kGgufArchitecture);
  const std::string name = value == nullptr ? "" : value->text;
  if (!is_gguf_architecture(name))
    throw InputError(checkpoint.path(), fmt::format("{} is \"{}\", expected {}", kGgufArchitecture,
                                                    escape(name), gguf_architectures()));
  const std::uint64_t experts = whole_of(checkpoint, name, "expert_count").value_or(0);
  if (const GgufArchitecture* found = find_gguf_architecture(name, experts > 0)) return *found;
  throw InputError(
      checkpoint.path(),
      fmt::format("{}.expert_count is {}, expected {}: models of this architecture "
                  "have {}experts",
                  name, experts, experts > 0 ? "0" : "a number above 0", experts > 0 ? "no " : ""));
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
    write_fixed(architecture_.fixed);
    if (architecture_.encoder)
      json_.member("type_vocab_size", has(kTokenTypes) ? rows_of(kTokenTypes) : 0);
    if (architecture_.model_type == "t5")
      json_.member("feed_forward_proj", has(kGgufEncoderGate) ? "gated-gelu" : "relu");
    write_keys();
    write_heads();
    write_angles();
    write_tokens();
    json_.end_object();
    return ModelConfig::parse(std::move(text_), checkpoint_.path());
  }

 private:
  /// The members `text` of an object.
  void write_fixed(std::string_view text) {
    if (text.empty()) return;
    const std::string object = fmt::format("{{{}}}", text);
    for (const JsonMember& member : parse_json_file(object, checkpoint_.path()).members)
      json_.key(member.name)
          .raw(object.substr(member.value.begin, member.value.end - member.value.begin));
  }

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
    return whole_of(checkpoint_, architecture_.name, key);
  }
  bool has(std::string_view tensor) const {
    const std::string name(tensor);
    return checkpoint_.find(name) != nullptr || checkpoint_.find_opaque(name) != nullptr;
  }
  /// The shape of a tensor that is there, of any type.
  const Shape& shape_of(std::string_view tensor) const {
    const std::string name(tensor);
    const TensorInfo* info = checkpoint_.find(name);
    return info != nullptr ? info->shape : checkpoint_.find_opaque(name)->shape;
  }
  std::uint64_t rows_of(std::string_view tensor) const {
    const Shape& shape = shape_of(tensor);
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
    if (architecture_.model_type == "llama" && has("blk.0.attn_q.bias"))
      json_.member("attention_bias", true);
    if (architecture_.experts) write_expert_sizes();
  }

  /// Sizes of experts that a file does not have to say: those of their tensors.
  void write_expert_sizes() {
    for (const auto& [own, tensor, from_end] :
         {std::tuple("expert_feed_forward_length", "blk.0.ffn_gate_exps.weight", 2U),
          {"expert_shared_feed_forward_length", "blk.0.ffn_gate_shexp.weight", 2U}}) {
      const auto known = std::ranges::find(architecture_.keys, own, &GgufConfigKey::own);
      const auto said = whole(own);
      if (known == architecture_.keys.end()) {
        if (said && said != whole("feed_forward_length"))
          refuse(full(own), fmt::format("{}", *said), "that of feed_forward_length");
      } else if (!said && has(tensor) && shape_of(tensor).size() >= from_end) {
        json_.member(known->name, shape_of(tensor)[shape_of(tensor).size() - from_end]);
      }
    }
  }

  Index head_size() const {
    if (const auto size = whole("attention.key_length")) return static_cast<Index>(*size);
    const auto hidden = whole("embedding_length"), heads = whole("attention.head_count");
    return hidden && heads && *heads > 0 ? static_cast<Index>(*hidden / *heads) : 0;
  }

  void write_heads() {
    if (const auto used = whole("expert_used_count"); used && *used > 0 && !architecture_.experts)
      refuse(full("expert_used_count"), fmt::format("{}", *used), "0: there are no experts");
    const Index size = head_size();
    if (const auto value = whole("attention.value_length");
        value && static_cast<Index>(*value) != size)
      refuse(full("attention.value_length"), fmt::format("{}", *value),
             fmt::format("{}, the length of keys", size));
    const TypedValue* causal = find("attention.causal");
    const std::string_view expected = architecture_.encoder ? "false" : "true";
    if (causal != nullptr && causal->text != expected) refuse(causal->key, causal->text, expected);
    if (causal == nullptr && architecture_.encoder)
      throw InputError(checkpoint_.path(), fmt::format("no {}, expected false: an encoder reads "
                                                       "both sides of a token",
                                                       full("attention.causal")));
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
    const bool plain = kind == "none" && !factors && !two;
    if (plain && architecture_.fixed_angles.empty()) return;
    json_.key("rope_scaling").begin_object();
    if (plain) {
      // The class has others without this.
      json_.member("rope_type", "default").end_object();
      return;
    }
    write_fixed(architecture_.fixed_angles);
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
          std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
          std::pair("rope.scaling.yarn_beta_slow", "beta_slow"),
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

/// A tensor of the file, of numbers or of blocks.
struct StoredTensor {
  std::string_view name;
  const Shape* shape = nullptr;
  std::size_t file = 0;
  GgufNumbers numbers;
  const TensorInfo* plain = nullptr;  ///< without blocks

  std::uint64_t elements() const { return element_count(*shape).value_or(0); }
};

/// Collects the tensors of a checkpoint.
class TensorCollector {
 public:
  explicit TensorCollector(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), architecture_(need_architecture(checkpoint)) {}

  std::map<std::string, TensorInfo> run() && {
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      add({tensor.name,
           &tensor.shape,
           tensor.file,
           {.begin = tensor.begin, .dtype = tensor.dtype},
           &tensor});
    }
    for (const OpaqueTensor& tensor : checkpoint_.opaque()) {
      if (find(tensor.name) == nullptr) continue;
      const BlockFormat* blocks = find_block_format(tensor.type);
      if (blocks == nullptr)
        throw InputError(checkpoint_.path(),
                         fmt::format("tensor '{}' has type {}, expected one whose blocks are "
                                     "decoded: {}",
                                     escape(tensor.name), tensor.type, block_names()));
      add({tensor.name, &tensor.shape, tensor.file, {.begin = tensor.begin, .blocks = blocks}});
    }
    for (const auto& [name, parts] : turned_) add_turned(name, parts);
    return std::move(tensors_);
  }

 private:
  static std::string block_names() {
    std::vector<std::string_view> names;
    for (const BlockFormat& format : block_formats()) names.push_back(format.name);
    return or_list(names);
  }

  [[noreturn]] void refuse(std::string_view tensor, const std::string& what) const {
    throw InputError(checkpoint_.path(), fmt::format("{}: {}", escape(tensor), what));
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

  void add(const StoredTensor& tensor) {
    const GgufTensorName* row = find(std::string(tensor.name));
    if (row == nullptr) return;
    const std::string name =
        gguf_with_gate(gguf_with_layer(row->name, gguf_layer_of(tensor.name)), gated_);
    if (row->change == GgufChange::kTurned || row->change == GgufChange::kTurnedOfTwo) {
      auto& parts = turned_[name];
      parts.resize(row->change == GgufChange::kTurned ? 1 : 2);
      // The row before has the same name.
      const bool second = row != architecture_.tensors.data() && row[-1].name == row->name;
      parts[second ? 1 : 0] = tensor;
      return;
    }
    if (row->name.find("{e}") != std::string_view::npos) return add_experts(name, tensor);
    tensors_.emplace(name, made(*row, tensor));
  }

  /// How many experts a layer has; those of `tensor` are as many.
  std::uint64_t experts_of(const StoredTensor& tensor, std::size_t dimensions) const {
    constexpr std::uint64_t kMost = 4096;
    const std::uint64_t count =
        whole_of(checkpoint_, architecture_.name, "expert_count").value_or(0);
    const Shape& shape = *tensor.shape;
    if (shape.size() != dimensions || shape[0] != count || count > kMost)
      refuse(tensor.name, fmt::format("shape {}, expected {} dimensions, the first of {} experts, "
                                      "at most {}",
                                      shape_text(shape), dimensions, count, kMost));
    return count;
  }

  /// Each expert is a tensor of its own.
  void add_experts(const std::string& name, const StoredTensor& tensor) {
    const std::uint64_t experts = experts_of(tensor, 3);
    const Shape shape(tensor.shape->begin() + 1, tensor.shape->end());
    const std::uint64_t elements = element_count(shape).value_or(0);
    const std::uint64_t bytes = tensor.numbers.bytes(elements);
    for (std::uint64_t e = 0; e < experts; ++e) {
      StoredTensor expert = tensor;
      expert.shape = &shape;
      expert.numbers.begin += e * bytes;
      TensorInfo info;
      if (tensor.plain != nullptr) {
        info = *tensor.plain;
        info.shape = shape;
        info.begin = expert.numbers.begin;
        info.end = info.begin + bytes;
      } else {
        info = decoded(expert, {.elements = elements});
      }
      tensors_.emplace(gguf_with_expert(name, e), std::move(info));
    }
  }

  void add_turned(const std::string& name, const std::vector<StoredTensor>& parts) {
    const auto there = std::ranges::find_if(parts, [](const auto& part) { return part.shape; });
    std::vector<GgufExperts> readers;
    for (const StoredTensor& part : parts) {
      if (part.shape == nullptr)
        refuse(there->name, fmt::format("one half of {}, expected the other, too", name));
      if (*part.shape != *there->shape)
        refuse(part.name, fmt::format("shape {}, expected {} as '{}'", shape_text(*part.shape),
                                      shape_text(*there->shape), escape(there->name)));
      readers.push_back({&checkpoint_.files()[part.file].file, part.numbers});
    }
    const bool matrix = there->name.ends_with(".weight");
    const std::uint64_t experts = experts_of(*there, matrix ? 3 : 2);
    const Shape& shape = *there->shape;
    const std::uint64_t rows = shape[1], columns = matrix ? shape[2] : 1;
    if (experts == 0 || rows == 0 || columns == 0)
      refuse(there->name, fmt::format("shape {}, expected elements", shape_text(shape)));
    TensorInfo info;
    info.name = there->name;
    info.shape = {experts};
    if (matrix) info.shape.push_back(columns);
    info.shape.push_back(rows * parts.size());
    info.end = element_count(info.shape).value_or(0) * sizeof(float);
    info.file = there->file;
    info.reader = turned_reader(std::move(readers), experts, rows, columns, cache_);
    tensors_.emplace(name, std::move(info));
  }

  /// Heads of queries, or of keys.
  std::uint64_t heads(GgufChange change) const {
    const auto all = whole_of(checkpoint_, architecture_.name, "attention.head_count");
    const auto keys = whole_of(checkpoint_, architecture_.name, "attention.head_count_kv");
    return (change == GgufChange::kKeyRows ? keys : all).value_or(all.value_or(0));
  }

  TensorInfo made(const GgufTensorName& row, const StoredTensor& tensor) const {
    Shape shape = *tensor.shape;
    if (row.change == GgufChange::kVector && shape.size() == 1) shape.insert(shape.begin(), 1);
    StoredTensor as = tensor;
    as.shape = &shape;
    if (tensor.plain != nullptr &&
        (row.change == GgufChange::kNone || row.change == GgufChange::kVector)) {
      TensorInfo info = *tensor.plain;
      info.shape = shape;
      return info;
    }
    GgufLayout layout{.elements = as.elements()};
    const std::uint64_t rows = shape.empty() ? 1 : shape[0];
    layout.columns = rows == 0 ? 0 : layout.elements / rows;
    if (row.change == GgufChange::kPlusOne) layout.less = 1;
    if (row.change == GgufChange::kQueryRows || row.change == GgufChange::kKeyRows) {
      const std::uint64_t count = heads(row.change);
      if (count == 0 || rows % count != 0 || rows / count % 2 != 0)
        refuse(tensor.name,
               fmt::format("{} rows, expected an even number for each of {} heads", rows, count));
      layout.head_rows = rows / count;
    }
    return decoded(as, layout);
  }

  static TensorInfo decoded(const StoredTensor& tensor, const GgufLayout& layout) {
    TensorInfo info;
    info.name = tensor.name;
    info.dtype = DType::kF32;
    info.shape = *tensor.shape;
    info.end = layout.elements * sizeof(float);
    info.file = tensor.file;
    info.reader = decoded_reader(tensor.numbers, layout);
    return info;
  }

  const Checkpoint& checkpoint_;
  const GgufArchitecture& architecture_;
  const bool gated_ = checkpoint_.find(kGgufEncoderGate) != nullptr ||
                      checkpoint_.find_opaque(kGgufEncoderGate) != nullptr;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::vector<StoredTensor>> turned_;  ///< by transformers' name
  std::shared_ptr<PieceCache> cache_ = std::make_shared<PieceCache>();
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
  std::string own = gguf_name_of(need_architecture(checkpoint), name);
  return own.empty() ? name : own;
}

bool runs_gguf(const Checkpoint& checkpoint) {
  const TypedValue* value = find_gguf_value(checkpoint, kGgufArchitecture);
  return has_gguf_names(checkpoint) && value != nullptr && is_gguf_architecture(value->text);
}

}  // namespace masque::store
