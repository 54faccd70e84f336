#include "surgery/convert/to_llama_cpp.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "base/thread/parallel.hpp"
#include "kernel/rotary.hpp"
#include "model/checkpoint/load.hpp"
#include "model/family.hpp"
#include "model/known_keys.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/gguf/gguf_architecture.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_model.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/gguf/gguf_tokenizer.hpp"
#include "store/names/named_tensors.hpp"
#include "tensor/block_encoder.hpp"
#include "tensor/convert.hpp"
#include "text/open/gguf_vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {

namespace {

using store::GgufArchitecture;
using store::GgufChange;

// Which architecture a model has.

/// llama.cpp runs Mistral's models as Llama's.
std::string_view own_model_type(std::string_view model_type) {
  return model_type == "mistral" ? "llama" : model_type;
}

const GgufArchitecture* find_architecture(std::string_view model_type) {
  for (const GgufArchitecture& one : store::gguf_architecture_table())
    if (!one.only_read && one.model_type == own_model_type(model_type)) return &one;
  return nullptr;
}

const GgufArchitecture& need_architecture(const store::ModelConfig& config) {
  if (const GgufArchitecture* found = find_architecture(config.model_type())) return *found;
  throw InputError(
      config.path(),
      fmt::format("model_type is \"{}\", expected a model that llama.cpp's files are "
                  "written of: {} ({} keep writes a container)",
                  escape(config.model_type()), store::gguf_architectures(true), field("names")));
}

// Designs.

bool close(std::span<const double> a, std::span<const double> b) {
  // Factors of angles are float.
  return std::ranges::equal(a, b, [](double x, double y) {
    return std::abs(x - y) <= 4e-7 * std::max(std::abs(x), std::abs(y));
  });
}

/// Whether two layers turn by the same angles, up to float.
bool turn_alike(const model::RotaryDesign& a, const model::RotaryDesign& b) {
  const auto long_of = [](const model::RotaryDesign& rotary) -> std::span<const double> {
    return rotary.long_frequencies.empty() ? rotary.frequencies : rotary.long_frequencies;
  };
  const bool same_length = a.long_from == b.long_from ||
                           (close(a.frequencies, long_of(a)) && close(b.frequencies, long_of(b)));
  return a.layout == b.layout && a.values == b.values && same_length &&
         close(a.frequencies, b.frequencies) && close(long_of(a), long_of(b)) &&
         close(std::span(&a.factor, 1), std::span(&b.factor, 1));
}

bool alike(const model::Design& a, model::Design b) {
  for (std::size_t i = 0; i < std::min(a.layers.size(), b.layers.size()); ++i) {
    if (turn_alike(a.layers[i].rotary, b.layers[i].rotary)) b.layers[i].rotary = a.layers[i].rotary;
  }
  return model::same_design(a, b);
}

/// The object of config.json with the settings of the angles of layers that read everything.
std::optional<model::FamilyConfig> angles_of(const model::FamilyConfig& config) {
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    auto rope = config.object(name);
    if (!rope) continue;
    if (auto inner = rope->raw().object("full_attention"))
      return model::FamilyConfig(*std::move(inner));
    return rope;
  }
  return std::nullopt;
}

// The values.

/// Rows of heads whose halves become pairs of neighbours.
ReadFunction paired_rows(ReadFunction read, std::uint64_t head_rows, std::uint64_t row_bytes) {
  return [read = std::move(read), head_rows, row_bytes](std::uint64_t offset, MutableBytes out) {
    std::uint64_t done = 0;
    while (done < out.size()) {
      const std::uint64_t at = offset + done, row = at / row_bytes, inside = at % row_bytes;
      const std::uint64_t in_head = row % head_rows;
      const std::uint64_t source = row - in_head + in_head % 2 * (head_rows / 2) + in_head / 2;
      const std::uint64_t count = std::min<std::uint64_t>(row_bytes - inside, out.size() - done);
      read(source * row_bytes + inside, out.subspan(done, count));
      done += count;
    }
  };
}

/// Tensors of `bytes` bytes each, one after the other.
ReadFunction stacked(std::vector<ReadFunction> parts, std::uint64_t bytes) {
  return [parts = std::move(parts), bytes](std::uint64_t offset, MutableBytes out) {
    while (!out.empty()) {
      const std::uint64_t inside = offset % bytes;
      const std::uint64_t count = std::min<std::uint64_t>(bytes - inside, out.size());
      parts[offset / bytes](inside, out.first(count));
      out = out.subspan(count);
      offset += count;
    }
  };
}

/// Every `step`-th output from `first` on of experts [experts, columns, rows · step], turned:
/// [experts, rows, columns]. `last` has one expert, which `owners`, one for each, stand for.
struct TurnedOutputs {
  const store::Checkpoint& checkpoint;
  const store::TensorInfo& info;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t step = 1;
  std::uint64_t first = 0;
  std::shared_ptr<store::UnpackedTensor> last;
  std::shared_ptr<const std::vector<char>> owners;

  ReadFunction function() const {
    const std::uint64_t width = dtype_bits(info.dtype) / 8, bytes = rows * columns * width;
    std::vector<ReadFunction> experts;
    for (std::size_t e = 0; e < owners->size(); ++e) {
      experts.emplace_back([own = *this, e, bytes](std::uint64_t offset, MutableBytes out) {
        own.last->read(&(*own.owners)[e], bytes, offset, out,
                       [&](MutableBytes all) { own.fill(e, all); });
      });
    }
    return stacked(std::move(experts), bytes);
  }

 private:
  void fill(std::uint64_t expert, MutableBytes out) const {
    const std::uint64_t width = dtype_bits(info.dtype) / 8, outputs = rows * step;
    std::vector<std::byte> row(outputs * width);
    for (std::uint64_t column = 0; column < columns; ++column) {
      checkpoint.read(info, (expert * columns + column) * row.size(), row);
      for (std::uint64_t r = 0; r < rows; ++r)
        std::copy_n(row.begin() + static_cast<std::ptrdiff_t>((r * step + first) * width), width,
                    out.begin() + static_cast<std::ptrdiff_t>((r * columns + column) * width));
    }
  }
};

/// Floats with 1 added.
store::Computed plus_one(ReadFunction read, DType from) {
  store::Computed source;
  source.chunk_bytes = 1 << 18;
  source.fill = [read = std::move(read), from](std::uint64_t offset, MutableBytes out) {
    const std::uint64_t width = dtype_bits(from) / 8, count = out.size() / sizeof(float);
    std::vector<std::byte> bytes(count * width);
    std::vector<float> numbers(count);
    read(offset / sizeof(float) * width, bytes);
    to_float(from, bytes, numbers);
    for (float& number : numbers) number += 1.0F;
    std::ranges::copy(std::as_bytes(std::span(numbers)), out.begin());
  };
  return source;
}

constexpr std::uint64_t kChunkBlocks = 1 << 11;

store::Computed blocks_of(ReadFunction read, DType from, const BlockFormat& format,
                          const std::string& name, const std::string& path, Overflow& overflow) {
  store::Computed source;
  source.chunk_bytes = kChunkBlocks * format.bytes;
  source.fill = [read = std::move(read), from, &format, name, path, &overflow](std::uint64_t offset,
                                                                               MutableBytes out) {
    const std::uint64_t width = dtype_bits(from) / 8;
    const std::uint64_t count = out.size() / format.bytes * format.elements;
    std::vector<std::byte> bytes(count * width);
    std::vector<float> numbers(count);
    read(offset / format.bytes * format.elements * width, bytes);
    to_float(from, bytes, numbers);
    if (!std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); }))
      throw InputError(path, fmt::format("tensor '{}': a value is not finite, which {} cannot hold",
                                         escape(name), format.name));
    if (!encode_blocks(format, numbers, out)) overflow.note(name);
  };
  return source;
}

/// The blocks for rows of `columns` elements: the wanted ones, else Q8_0, whose blocks are shorter;
/// nullptr if no row is whole blocks.
const BlockFormat* fitting_blocks(const BlockFormat& wanted, std::uint64_t columns) {
  if (columns % wanted.elements == 0) return &wanted;
  const BlockFormat* small = find_block_format("Q8_0");
  return columns % small->elements == 0 ? small : nullptr;
}

/// Tells about matrices that have other types than wanted.
struct OtherTypes {
  std::uint64_t smaller = 0;  ///< in Q8_0
  std::uint64_t half = 0;     ///< in F16
  std::string first;

  void add(const std::string& name, bool has_blocks) {
    (has_blocks ? smaller : half) += 1;
    if (first.empty()) first = name;
  }
  void tell(const BlockFormat& wanted, std::vector<std::string>& notes) const {
    if (first.empty()) return;
    std::vector<std::string> counts;
    if (smaller > 0) counts.push_back(fmt::format("{} in Q8_0", smaller));
    if (half > 0) counts.push_back(fmt::format("{} in F16", half));
    notes.push_back(
        fmt::format("rows that are no multiple of {} elements, which {} needs: {}, the "
                    "first '{}'",
                    wanted.elements, wanted.name,
                    comma_list(counts, [](const auto& text) { return text; }), escape(first)));
  }
};

store::OutputOpaque opaque_of(const std::string& name, const Shape& shape,
                              const BlockFormat& format, store::Computed source,
                              const std::string& after) {
  store::OutputOpaque opaque;
  opaque.info.name = name;
  opaque.info.type = format.name;
  opaque.info.shape = shape;
  opaque.info.end = element_count(shape).value_or(0) / format.elements * format.bytes;
  opaque.source = std::move(source);
  opaque.after = after;
  return opaque;
}

std::uint32_t file_type_of(const BlockFormat& blocks) {
  return blocks.name == "Q4_0" ? 2 : blocks.name == "Q8_0" ? 7 : 14;
}

}  // namespace

std::string written_blocks() { return or_list(encoded_formats()); }

bool has_llama_cpp_architecture(const std::optional<store::ModelConfig>& config) {
  const GgufArchitecture* found = config ? find_architecture(config->model_type()) : nullptr;
  if (found == nullptr || !found->encoder) return found != nullptr;
  return config->architectures() == std::vector{std::string(found->class_name)};
}

struct LlamaCppModel::State {
  /// The family's plan and tensors of a checkpoint.
  struct Opened {
    Opened(const store::Checkpoint& checkpoint, const store::ModelConfig& as_config,
           store::NamedTensors as_names, bool encoder)
        // As it is in f32: Gemma's scale of embeddings is rounded to the type.
        : config(store::ModelConfig::parse(store::with_dtype(as_config, DType::kF32),
                                           as_config.path())),
          names(std::move(as_names)),
          plan(plan_of(config, encoder)),
          found(model::find_tensors(plan, checkpoint, names)) {}

    /// The plan of the model; without a head if it is an `encoder`.
    static model::ModelPlan plan_of(const store::ModelConfig& config, bool encoder) {
      model::ModelPlan plan =
          model::read_plan(model::choose_family(config, ""), model::FamilyConfig(config));
      if (!encoder) return plan;
      plan.headless = true;
      plan.heads.clear();
      return plan;
    }

    store::ModelConfig config;
    store::NamedTensors names;
    model::ModelPlan plan;
    model::LoadPlan found;
  };

  State(const store::Checkpoint& checkpoint_in, const store::ModelConfig& config_in,
        const LlamaCppValues& values_in)
      : checkpoint(checkpoint_in),
        config(config_in),
        values(values_in),
        architecture(need_architecture(config_in)),
        opened(checkpoint_in, config_in, store::NamedTensors(checkpoint_in, config_in),
               architecture.encoder) {}

  std::string key(std::string_view own) const {
    return fmt::format("{}.{}", architecture.name, own);
  }
  void add(std::string_view own, Index number) {
    typed.push_back(store::make_gguf_uint32(key(own), static_cast<std::uint32_t>(number)));
  }
  void add(std::string_view own, double number) {
    typed.push_back(store::make_gguf_float32(key(own), static_cast<float>(number)));
  }
  bool has_key(std::string_view own) const {
    const auto in = [&](std::span<const store::GgufConfigKey> keys) {
      return std::ranges::find(keys, own, &store::GgufConfigKey::own) != keys.end();
    };
    return in(architecture.sizes) || in(architecture.keys);
  }

  void add_sizes();
  void add_angles();
  void add_factors(std::string_view name, const std::vector<double>& factors);
  void add_tokenizer(std::vector<std::string>& notes);
  /// A tensor of the file.
  struct OwnTensor {
    std::string name;
    const store::GgufTensorName* row = nullptr;
    std::vector<const store::TensorInfo*> infos;  ///< what it is made of: one, or all experts
    bool second = false;                          ///< of the two that transformers joins
  };
  /// Its values as they lie in the file, in the type that the checkpoint has.
  struct OwnValues {
    ReadFunction read;
    Shape shape;
    bool as_stored = false;  ///< they are those of the one info
  };

  std::vector<OwnTensor> own_tensors();
  OwnValues values_of(const OwnTensor& tensor);
  OwnValues stacked_values(const OwnTensor& tensor) const;
  OwnValues turned_values(const OwnTensor& tensor) const;
  void add_tensor(const OwnTensor& tensor, OtherTypes& others);

  const store::Checkpoint& checkpoint;
  const store::ModelConfig& config;
  LlamaCppValues values;
  const GgufArchitecture& architecture;
  Opened opened;
  std::vector<store::TypedValue> typed;
  std::shared_ptr<store::UnpackedTensor> unpacked = std::make_shared<store::UnpackedTensor>();
  Overflow overflow;
  store::OutputWeights weights;
  std::uint64_t converted = 0;
};

void LlamaCppModel::State::add_sizes() {
  const model::Design& design = opened.found.design;
  const bool plain_heads = design.head_size * design.num_attention_heads == design.hidden_size;
  const bool says_heads =
      has_key("attention.key_length") && (!plain_heads || architecture.says_head_size);
  Index window = 0;
  for (const model::LayerDesign& layer : design.layers)
    if (layer.window) window = std::max(window, *layer.window + 1);
  if (design.max_position_embeddings > 0) add("context_length", design.max_position_embeddings);
  add("embedding_length", design.hidden_size);
  add("block_count", design.num_hidden_layers);
  add("feed_forward_length", design.intermediate_size);
  add("attention.head_count", design.num_attention_heads);
  if (!architecture.encoder) add("attention.head_count_kv", design.num_key_value_heads);
  add(has_key("attention.layer_norm_epsilon") ? "attention.layer_norm_epsilon"
                                              : "attention.layer_norm_rms_epsilon",
      design.norm.epsilon);
  if (says_heads) {
    add("attention.key_length", design.head_size);
    add("attention.value_length", design.head_size);
  }
  add("vocab_size", design.vocab_size);
  if (window > 0 && has_key("attention.sliding_window")) add("attention.sliding_window", window);
  if (design.score_cap > 0) add("attn_logit_softcapping", design.score_cap);
  if (design.head.logit_cap > 0) add("final_logit_softcapping", design.head.logit_cap);
  if (architecture.encoder) {
    typed.push_back(store::make_gguf_bool(key("attention.causal"), false));
    typed.push_back(store::make_gguf_uint32("tokenizer.ggml.token_type_count",
                                            static_cast<std::uint32_t>(design.type_vocab_size)));
  }
  if (!design.experts) return;
  add("expert_count", design.experts->count);
  add("expert_used_count", design.experts->per_token);
  if (has_key("expert_feed_forward_length") || architecture.says_expert_size)
    add("expert_feed_forward_length", design.experts->intermediate_size);
  if (design.experts->shared_intermediate_size > 0)
    add("expert_shared_feed_forward_length", design.experts->shared_intermediate_size);
}

void LlamaCppModel::State::add_factors(std::string_view name, const std::vector<double>& factors) {
  const std::vector<float> numbers(factors.begin(), factors.end());
  const auto bytes = std::as_bytes(std::span(numbers));
  store::OutputTensor tensor;
  tensor.info.name = name;
  tensor.info.dtype = DType::kF32;
  tensor.info.shape = {numbers.size()};
  tensor.info.end = bytes.size();
  tensor.source =
      store::Literal{std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
  weights.tensors.push_back(std::move(tensor));
}

void LlamaCppModel::State::add_angles() {
  const model::Design& design = opened.found.design;
  if (!has_key("rope.freq_base") || design.layers.empty()) return;
  const model::FamilyConfig keys(opened.config);
  const auto rope = angles_of(keys);
  double theta = keys.positive("rope_theta", architecture.usual_angle_base);
  if (rope) theta = rope->positive("rope_theta", theta);
  add("rope.freq_base", theta);
  // Of a layer that reads everything: windows may have angles of their own.
  const auto full = std::ranges::find_if(design.layers, [](const auto& l) { return !l.window; });
  const model::RotaryDesign& rotary =
      (full == design.layers.end() ? design.layers.front() : *full).rotary;
  const auto size = static_cast<Index>(2 * rotary.frequencies.size());
  if (architecture.says_rotated_size || size != design.head_size) add("rope.dimension_count", size);
  if (!rope) return;
  const std::string kind = rope->text("rope_type", rope->text("type", "default"));
  if (kind == "default") return;
  const auto add_kind = [&](const char* name) {
    typed.push_back(store::make_gguf_text(key("rope.scaling.type"), name));
  };
  if (kind == "linear" || kind == "yarn") {
    add_kind(kind == "linear" ? "linear" : "yarn");
    add("rope.scaling.factor", rope->positive("factor", 1));
  }
  if (kind == "yarn") {
    if (rope->has("original_max_position_embeddings"))
      add("rope.scaling.original_context_length",
          rope->size({"original_max_position_embeddings"}, 1));
    if (rope->has("attention_factor"))
      add("rope.scaling.attn_factor", rope->positive("attention_factor", 1));
    for (const std::string name : {"beta_fast", "beta_slow"})
      if (rope->has(name)) add("rope.scaling.yarn_" + name, rope->positive(name, 1));
    return;
  }
  const std::vector<double> plain = kernel::rotary_frequencies(theta, size);
  const auto factors = [&](const std::vector<double>& scaled) {
    std::vector<double> divided(plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) divided[i] = plain[i] / scaled[i];
    return divided;
  };
  if (kind == "llama3") return add_factors(store::kGgufFrequencies, factors(rotary.frequencies));
  if (kind == "longrope" || kind == "su") {
    const auto& all = rotary.long_frequencies;
    add_factors(store::kGgufLongFactors, factors(all.empty() ? rotary.frequencies : all));
    add_factors(store::kGgufShortFactors, factors(rotary.frequencies));
    if (rotary.long_from > 0) add("rope.scaling.original_context_length", rotary.long_from);
    add("rope.scaling.attn_factor", rotary.factor);
    return;
  }
  if (kind != "linear")
    throw InputError(config.path(),
                     fmt::format("rope_type is {}, expected one that llama.cpp's metadata can say: "
                                 "default, linear, llama3, longrope or yarn ({} keep writes a "
                                 "container)",
                                 escape(kind), field("names")));
}

void LlamaCppModel::State::add_tokenizer(std::vector<std::string>& notes) {
  const std::string& folder = checkpoint.folder();
  if (!text::has_tokenizer(folder)) {
    notes.emplace_back("no tokenizer in the folder: the file has none, and llama.cpp needs one");
    for (const auto& [own, name] :
         {std::pair("bos", "bos_token_id"), {"eos", "eos_token_id"}, {"padding", "pad_token_id"}}) {
      std::optional<std::uint64_t> id;
      if (!input_error_message([&, key_name = name] { id = config.size(key_name); }) && id &&
          *id < UINT32_MAX)
        typed.push_back(store::make_gguf_uint32(fmt::format("tokenizer.ggml.{}_token_id", own),
                                                static_cast<std::uint32_t>(*id)));
    }
    return;
  }
  const text::Tokenizer tokenizer = text::Tokenizer::open(folder, {.model = folder});
  text::GgufVocabulary vocabulary = text::make_gguf_vocabulary(tokenizer, folder);
  const auto rows = static_cast<std::size_t>(opened.found.design.vocab_size);
  if (vocabulary.tokens.size() > rows)
    throw InputError(folder, fmt::format("the tokenizer has {} tokens, expected at most {}, the "
                                         "rows of the table",
                                         vocabulary.tokens.size(), rows));
  for (std::size_t id = vocabulary.tokens.size(); id < rows; ++id) {
    vocabulary.tokens.push_back(
        text::gguf_token(vocabulary.model, text::unused_gguf_token(id), text::PieceType::kUnused));
    vocabulary.types.push_back(static_cast<int>(text::PieceType::kUnused));
    if (!vocabulary.scores.empty()) vocabulary.scores.push_back(0);
  }
  std::ranges::move(store::gguf_tokenizer_metadata(vocabulary), std::back_inserter(typed));
}

/// What every tensor of the model becomes, in the order of the checkpoint.
std::vector<LlamaCppModel::State::OwnTensor> LlamaCppModel::State::own_tensors() {
  std::map<const store::TensorInfo*, std::vector<OwnTensor>> by_first;
  std::set<const store::TensorInfo*> named;
  // Exports may lack the prefix of the base model, and so do some names of the table.
  std::map<std::string, const store::TensorInfo*> by_name;
  for (const model::TensorPlan& tensor : opened.found.tensors) {
    model::for_spellings(tensor.placed.names, [&](std::string_view name) {
      const bool of_base = name.starts_with('~');
      if (of_base) name.remove_prefix(1);
      by_name.emplace(name, tensor.info);
      if (of_base) by_name.emplace(opened.plan.prefix + std::string(name), tensor.info);
    });
  }
  const auto experts = static_cast<std::uint64_t>(
      opened.found.design.experts ? opened.found.design.experts->count : 0);
  for (const store::GgufTensorName& row : architecture.tensors) {
    const bool of_layer = row.name.find("{l}") != std::string_view::npos;
    const bool of_expert = row.name.find("{e}") != std::string_view::npos;
    const Index layers = of_layer ? opened.found.design.num_hidden_layers : 1;
    for (Index l = 0; l < layers; ++l) {
      const std::string layer = fmt::format("{}", l);
      OwnTensor own{store::gguf_with_layer(row.own, layer), &row, {}, false};
      own.second = &row != architecture.tensors.data() && (&row)[-1].name == row.name;
      for (std::uint64_t e = 0; e < (of_expert ? experts : 1); ++e) {
        const auto found =
            by_name.find(store::gguf_with_expert(store::gguf_with_layer(row.name, layer), e));
        if (found == by_name.end()) continue;
        const store::TensorInfo* info = found->second;
        own.infos.push_back(info);
        named.insert(info);
      }
      if (!own.infos.empty()) by_first[own.infos.front()].push_back(std::move(own));
    }
  }
  for (const model::TensorPlan& tensor : opened.found.tensors) {
    if (named.contains(tensor.info)) continue;
    throw InputError(config.path(),
                     fmt::format("tensor '{}' has no name in llama.cpp's architecture {} ({} keep "
                                 "writes a container)",
                                 escape(tensor.info->name), architecture.name, field("names")));
  }
  std::vector<OwnTensor> all;
  for (const store::TensorInfo& info : checkpoint.tensors())
    if (const auto found = by_first.find(&info); found != by_first.end())
      std::ranges::move(found->second, std::back_inserter(all));
  return all;
}

LlamaCppModel::State::OwnValues LlamaCppModel::State::stacked_values(
    const OwnTensor& tensor) const {
  const store::TensorInfo& first = *tensor.infos.front();
  std::vector<ReadFunction> experts;
  for (const store::TensorInfo* info : tensor.infos) {
    if (info->dtype != first.dtype)
      throw InputError(checkpoint.path(),
                       fmt::format("tensor '{}' is {}, expected {} as '{}': experts of one layer "
                                   "have one type",
                                   escape(info->name), dtype_name(info->dtype),
                                   dtype_name(first.dtype), escape(first.name)));
    experts.push_back(plain_values(checkpoint, *info));
  }
  OwnValues made{stacked(std::move(experts), first.bytes()), first.shape};
  made.shape.insert(made.shape.begin(), tensor.infos.size());
  return made;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the function moves

LlamaCppModel::State::OwnValues LlamaCppModel::State::turned_values(const OwnTensor& tensor) const {
  const store::TensorInfo& info = *tensor.infos.front();
  const std::uint64_t step = tensor.row->change == GgufChange::kTurnedOfTwo ? 2 : 1;
  const bool matrix = info.shape.size() == 3;
  TurnedOutputs turned{
      .checkpoint = checkpoint,
      .info = info,
      .rows = info.shape.back() / step,
      .columns = matrix ? info.shape[1] : 1,
      .step = step,
      .first = tensor.second ? 1U : 0U,
      .last = unpacked,
      .owners = std::make_shared<const std::vector<char>>(info.shape[0]),
  };
  OwnValues made{turned.function(), {info.shape[0], turned.rows}};
  if (matrix) made.shape.push_back(turned.columns);
  return made;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the function moves

LlamaCppModel::State::OwnValues LlamaCppModel::State::values_of(const OwnTensor& tensor) {
  const store::TensorInfo& info = *tensor.infos.front();
  const GgufChange change = tensor.row->change;
  if (tensor.row->name.find("{e}") != std::string_view::npos) return stacked_values(tensor);
  if (change == GgufChange::kTurned || change == GgufChange::kTurnedOfTwo)
    return turned_values(tensor);
  OwnValues made{nullptr, info.shape, change == GgufChange::kNone || change == GgufChange::kVector};
  const bool turned =
      opened.names.is_transposed(info) !=
      (info.shape.size() == 2 && architecture.transposes && tensor.name.starts_with("blk."));
  if (turned) std::swap(made.shape[0], made.shape[1]);
  made.as_stored = made.as_stored && !turned;
  made.read =
      turned ? transposed_values(checkpoint, info, unpacked) : plain_values(checkpoint, info);
  const bool query = change == GgufChange::kQueryRows;
  if (query || change == GgufChange::kKeyRows) {
    const model::Design& design = opened.found.design;
    const auto heads =
        static_cast<std::uint64_t>(query ? design.num_attention_heads : design.num_key_value_heads);
    const std::uint64_t rows = made.shape[0];
    made.read = paired_rows(std::move(made.read), rows / heads, info.bytes() / rows);
  }
  if (change == GgufChange::kVector && made.shape.size() == 2 && made.shape[0] == 1)
    made.shape.erase(made.shape.begin());
  return made;
}

void LlamaCppModel::State::add_tensor(const OwnTensor& own, OtherTypes& others) {
  const store::TensorInfo& info = *own.infos.front();
  if (own.name == "output.weight" && opened.found.design.head.tied) return;
  if (!is_float(info.dtype) || dtype_bits(info.dtype) < 16)
    throw InputError(checkpoint.path(),
                     fmt::format("tensor '{}' is {}, expected F32, F16, BF16 or F64",
                                 escape(info.name), dtype_name(info.dtype)));
  OwnValues made = values_of(own);
  const bool matrix = store::is_gguf_matrix(own.name, made.shape.size());
  std::optional<DType> wanted = matrix ? values.dtype : DType::kF32;
  if (matrix && values.blocks != nullptr) {
    const BlockFormat* blocks = fitting_blocks(*values.blocks, made.shape.back());
    if (blocks != values.blocks) others.add(own.name, blocks != nullptr);
    if (blocks != nullptr) {
      const std::string after = weights.tensors.empty() ? "" : weights.tensors.back().info.name;
      weights.opaque.push_back(opaque_of(own.name, made.shape, *blocks,
                                         blocks_of(std::move(made.read), info.dtype, *blocks,
                                                   info.name, checkpoint.path(), overflow),
                                         after));
      ++converted;
      return;
    }
    wanted = DType::kF16;
  }
  store::OutputTensor tensor;
  tensor.info.name = own.name;
  tensor.info.dtype = wanted.value_or(info.dtype);
  tensor.info.shape = made.shape;
  tensor.info.end = element_count(made.shape).value_or(0) * dtype_bits(tensor.info.dtype) / 8;
  if (own.row->change == GgufChange::kPlusOne) {
    tensor.source = plus_one(std::move(made.read), info.dtype);
  } else if (tensor.info.dtype != info.dtype) {
    tensor.source = converted_values(std::move(made.read), info.dtype, tensor.info.dtype,
                                     values.overflow, info.name, overflow);
  } else if (!made.as_stored || info.reader != nullptr) {
    tensor.source = store::Computed{std::move(made.read)};
  } else {
    tensor.source = store::source_of(checkpoint.files()[info.file].file, info);
  }
  converted += tensor.info.dtype != info.dtype ? 1 : 0;
  weights.tensors.push_back(std::move(tensor));
}

LlamaCppModel::LlamaCppModel(const store::Checkpoint& checkpoint, const store::ModelConfig& config,
                             const LlamaCppValues& values)
    : state_(std::make_unique<State>(checkpoint, config, values)) {}

LlamaCppModel::~LlamaCppModel() = default;

store::OutputWeights LlamaCppModel::weights(std::vector<std::string>& notes) {
  State& s = *state_;
  s.weights.writer = "gguf";
  const std::vector<State::OwnTensor> tensors = s.own_tensors();
  s.typed.push_back(
      store::make_gguf_text(store::kGgufArchitecture, std::string(s.architecture.name)));
  const std::string name = base_name(s.checkpoint.folder());
  if (!name.empty() && name != ".") s.typed.push_back(store::make_gguf_text("general.name", name));
  const store::TensorInfo& table = model::word_table_of(s.opened.found);
  const auto type = s.values.blocks != nullptr
                        ? std::optional<std::uint64_t>(file_type_of(*s.values.blocks))
                        : store::gguf_file_type(s.values.dtype.value_or(table.dtype));
  if (type)
    s.typed.push_back(
        store::make_gguf_uint32(store::kGgufFileType, static_cast<std::uint32_t>(*type)));
  if (s.values.blocks != nullptr)
    s.typed.push_back(store::make_gguf_uint32("general.quantization_version", 2));
  s.add_sizes();
  s.add_angles();
  s.add_tokenizer(notes);
  OtherTypes others;
  for (const State::OwnTensor& tensor : tensors) s.add_tensor(tensor, others);
  if (s.values.blocks != nullptr) others.tell(*s.values.blocks, notes);
  for (const std::string& unused : s.opened.found.unused)
    notes.push_back(fmt::format("'{}' is no part of the model and is left out", escape(unused)));
  for (const store::TypedValue& value : s.typed)
    if (value.type == "STRING") s.weights.metadata.emplace_back(value.key, value.text);
  s.weights.typed = s.typed;
  return s.weights;
}

std::uint64_t LlamaCppModel::converted() const { return state_->converted; }

const Overflow& LlamaCppModel::overflow() const { return state_->overflow; }

void LlamaCppModel::verify(const std::string& path) const {
  const State& s = *state_;
  const store::Checkpoint made = store::open_checkpoint(path);
  const store::ModelConfig config = *store::gguf_config(made);
  const auto refuse = [&](std::string_view keys) {
    throw InputError(s.config.path(),
                     fmt::format("llama.cpp's metadata cannot say {} ({} keep writes a container)",
                                 keys, field("names")));
  };
  std::optional<State::Opened> opened;
  const auto why = input_error_message([&] {
    opened.emplace(made, config, store::NamedTensors::of_llama_cpp(made), s.architecture.encoder);
  });
  if (why) {
    const std::string place = path + ": ";
    refuse(
        fmt::format("this model: {}", why->starts_with(place) ? why->substr(place.size()) : *why));
  }
  const model::Design& own = s.opened.found.design;
  for (const std::string& unused : opened->found.unused)
    refuse(fmt::format("that the model has '{}'", escape(unused)));
  if (alike(own, opened->found.design)) return;
  // Whose value makes a difference to what the file says?
  std::vector<std::string> keys;
  for (const JsonMember& member : parse_json_file(s.config.text(), s.config.path()).members) {
    const std::string value =
        s.config.text().substr(member.value.begin, member.value.end - member.value.begin);
    bool differs = false;
    const auto wrong = input_error_message([&] {
      // One object of angles has the other's name in older files.
      const std::string text = member.name == "rope_parameters"
                                   ? erase_json_member(config.text(), {"rope_scaling"})
                                   : config.text();
      const auto changed =
          store::ModelConfig::parse(set_json_member(text, {member.name}, value), config.path());
      const model::ModelPlan plan = State::Opened::plan_of(changed, s.architecture.encoder);
      differs = !alike(opened->plan.design, plan.design);
    });
    if (differs || wrong) keys.push_back(member.name);
  }
  refuse(keys.empty() ? "what config.json says"
                      : comma_list(keys, [](const std::string& key) { return escape(key); }));
}

std::uint64_t quantise_llama_cpp(const store::Checkpoint& checkpoint, const BlockFormat& blocks,
                                 store::OutputWeights& weights, Overflow& overflow,
                                 std::vector<std::string>& notes) {
  if (!weights.opaque.empty())
    throw InputError(checkpoint.path(),
                     fmt::format("tensor '{}' is {} already, expected a file that is not quantised",
                                 escape(weights.opaque.front().info.name),
                                 escape(weights.opaque.front().info.type)));
  OtherTypes others;
  std::vector<store::OutputTensor> kept;
  for (store::OutputTensor& tensor : weights.tensors) {
    const store::TensorInfo& info = *checkpoint.find(tensor.info.name);
    const bool matrix = store::is_gguf_matrix(info.name, info.shape.size()) &&
                        is_float(info.dtype) && dtype_bits(info.dtype) >= 16;
    const BlockFormat* own = matrix ? fitting_blocks(blocks, info.shape.back()) : nullptr;
    if (matrix && own != &blocks) others.add(info.name, own != nullptr);
    if (own == nullptr) {
      if (matrix && info.dtype != DType::kF16) {
        tensor.source = converted_values(plain_values(checkpoint, info), info.dtype, DType::kF16,
                                         OverflowPolicy::kRefuse, info.name, overflow);
        tensor.info.dtype = DType::kF16;
      }
      kept.push_back(std::move(tensor));
      continue;
    }
    weights.opaque.push_back(opaque_of(info.name, info.shape, *own,
                                       blocks_of(plain_values(checkpoint, info), info.dtype, *own,
                                                 info.name, checkpoint.path(), overflow),
                                       kept.empty() ? "" : kept.back().info.name));
  }
  weights.tensors = std::move(kept);
  others.tell(blocks, notes);
  const auto set = [&](store::TypedValue value) {
    const auto found = std::ranges::find(weights.typed, value.key, &store::TypedValue::key);
    if (found != weights.typed.end()) {
      *found = std::move(value);
    } else {
      weights.typed.push_back(std::move(value));
    }
  };
  set(store::make_gguf_uint32(store::kGgufFileType, file_type_of(blocks)));
  set(store::make_gguf_uint32("general.quantization_version", 2));
  return weights.opaque.size();
}

}  // namespace masque::surgery
