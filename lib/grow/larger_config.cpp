#include "grow/larger_config.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "grow/width_rules.hpp"
#include "model/decoder_family.hpp"
#include "model/layer_list.hpp"
#include "model/masks.hpp"

namespace masque::grow {

namespace {

/// The keys of config.json that say a size, by all families.
constexpr std::array<std::string_view, 14> kWidths = {
    "hidden_size",       "n_embd",         "d_model", "dim",
    "intermediate_size", "n_inner",        "d_ff",    "d_inner",
    "ffn_dim",           "hidden_dim",     "n_embed", "inner_size",
    "ffn_hidden_size",   "mlp_hidden_size"};
constexpr std::array<std::string_view, 8> kHeads = {
    "num_attention_heads", "n_head",       "num_heads", "n_heads",
    "num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads"};
constexpr std::array<std::string_view, 4> kLayers = {"num_hidden_layers", "n_layer", "n_layers",
                                                     "num_layers"};

/// What sentence-transformers pools: the hidden size, as a folder of its module says it.
constexpr const char* kPoolingConfig = "1_Pooling/config.json";
constexpr const char* kPooledSize = "word_embedding_dimension";

/// Keys that are the hidden size too, if they have its value, by all families.
constexpr std::array<std::string_view, 3> kAlsoHidden = {"embedding_size", "pooler_hidden_size",
                                                         "word_embed_proj_dim"};

/// What layers have by a list, their copies have too. `all`: of each layer before.
void set_deeper_list(std::string_view key, const std::vector<std::string>& all,
                     std::span<const LayerCopy> copies, surgery::CheckpointEdit& edit) {
  std::vector<std::string> deep;
  deep.reserve(copies.size());
  for (const LayerCopy& layer : copies) deep.push_back(all[static_cast<std::size_t>(layer.from)]);
  std::string text;
  JsonWriter(text).value(model::LayerList::of(deep).text());
  edit.set_config(key, text);
}

/// The keys of config.json with an item for each layer, by all families.
constexpr std::array<std::string_view, 4> kLayerItems = {"layer_types", "no_rope_layers",
                                                         "attention_layers", "attention_window"};

/// A JSON list with the word `local` or `global` for each of `copies`: whether its original in
/// `before` reads a window.
std::string kinds_of(const model::Design& before, std::span<const LayerCopy> copies,
                     std::string_view local, std::string_view global) {
  std::string kinds;
  for (const LayerCopy& layer : copies) {
    const bool is_local = before.layers[static_cast<std::size_t>(layer.from)].window.has_value();
    kinds += fmt::format("{}\"{}\"", kinds.empty() ? "" : ", ", is_local ? local : global);
  }
  return "[" + kinds + "]";
}

/// Of Qwen's mixtures with some layers without experts: names these among `copies`, since a step
/// would count them otherwise. `before` as for set_layers().
void set_dense_layers(surgery::CheckpointEdit& edit, const model::Design& before,
                      std::span<const LayerCopy> copies) {
  if (!before.experts) return;
  std::string dense;
  for (std::size_t l = 0; l < copies.size(); ++l) {
    if (!before.layers[static_cast<std::size_t>(copies[l].from)].experts)
      dense += fmt::format("{}{}", dense.empty() ? "" : ", ", l);
  }
  if (dense.empty()) return;
  edit.set_config("decoder_sparse_step", "1");
  edit.set_config("mlp_only_layers", "[" + dense + "]");
}

/// Gives each layer of `copies` the item of its original in the lists of config.json. `config` and
/// `before` as for set_layers(). Throws InputError for a list of another length.
void set_layer_items(surgery::CheckpointEdit& edit, const store::ModelConfig& config,
                     const model::Design& before, std::span<const LayerCopy> copies) {
  const JsonValue root = parse_json_file(config.text(), config.path());
  for (const std::string_view key : kLayerItems) {
    const JsonValue* list = root.find(key);
    if (list == nullptr || !list->is(JsonKind::kArray)) continue;
    if (std::ssize(list->items) != before.num_hidden_layers) {
      throw InputError(config.path(), fmt::format("{}: {} items, expected {}", key,
                                                  list->items.size(), before.num_hidden_layers));
    }
    std::string text;
    for (const LayerCopy& layer : copies) {
      const JsonValue& item = list->items[static_cast<std::size_t>(layer.from)];
      text += text.empty() ? "[" : ", ";
      text += std::string_view(config.text()).substr(item.begin, item.end - item.begin);
    }
    edit.set_config(key, text + "]");
  }
  set_dense_layers(edit, before, copies);
  // GPT-Neo's list of kinds, with how often it repeats.
  if (config.has("attention_types"))
    edit.set_config("attention_types",
                    fmt::format("[[{}, 1]]", kinds_of(before, copies, "local", "global")));
}

/// Whether some layers of `design` read a window, and others everything.
bool has_some_windows(const model::Design& design) {
  const auto local = std::ranges::count_if(
      design.layers, [](const model::LayerDesign& layer) { return layer.window.has_value(); });
  return local > 0 && local < std::ssize(design.layers);
}

}  // namespace

void set_widths(surgery::CheckpointEdit& edit, const store::ModelConfig& config,
                const model::Design& before, double factor) {
  const auto multiply = [&](std::string_view key) {
    const auto size = config.size(key);
    if (!size) return;
    edit.set_config(key, fmt::format("{}", wider_size(static_cast<Index>(*size), factor, key)));
  };
  for (const std::string_view key : kWidths) multiply(key);
  const model::Family* family = model::find_family(before.family);
  for (const std::string_view key : kAlsoHidden) {
    // Of LLaDA the rows of the table.
    const bool rows = family != nullptr && std::ranges::find(family->files.vocab_fields, key) !=
                                               family->files.vocab_fields.end();
    if (rows) continue;
    if (config.size(key) == static_cast<std::uint64_t>(before.hidden_size)) multiply(key);
  }
  if (before.layer_kind == model::LayerKind::kTransformer) {
    for (const std::string_view key : kHeads) multiply(key);
  }
  const auto pooling = edit.file_text(kPoolingConfig);
  if (!pooling) return;
  std::optional<std::uint64_t> size;
  const auto unknown = input_error_message(
      [&] { size = store::ModelConfig::parse(*pooling, kPoolingConfig).size(kPooledSize); });
  if (unknown || size != static_cast<std::uint64_t>(before.hidden_size)) return;
  edit.set_file(
      kPoolingConfig,
      set_json_member(*pooling, {kPooledSize},
                      fmt::format("{}", wider_size(before.hidden_size, factor, kPooledSize))));
}

void set_layers(surgery::CheckpointEdit& edit, const store::ModelConfig& config,
                const model::Design& before, std::span<const LayerCopy> copies,
                const LayerSettings& settings) {
  const Index layers = std::ssize(copies);
  bool stated = false;
  for (const std::string_view key : kLayers) {
    const auto count = config.size(key);
    if (!count) continue;
    stated = true;
    // ALBERT's num_hidden_layers counts groups of inner layers.
    const Index scaled = static_cast<Index>(*count) * layers;
    if (scaled % before.num_hidden_layers != 0) {
      throw UsageError(fmt::format("{} {}, expected a multiple of {}", field("layers"), layers,
                                   before.num_hidden_layers / static_cast<Index>(*count)));
    }
    edit.set_config(key, fmt::format("{}", scaled / before.num_hidden_layers));
  }
  // transformers takes T5's decoder for as deep as the encoder unless its depth is said.
  if (config.size("num_layers") && !config.size("num_decoder_layers") && settings.has_decoder)
    edit.set_config("num_decoder_layers", fmt::format("{}", before.num_hidden_layers));
  if (!stated)
    throw InputError(config.path(), "no num_hidden_layers, expected the number of layers");
  set_layer_items(edit, config, before, copies);
  if (settings.reads_layer_types && !config.has("layer_types") && has_some_windows(before)) {
    edit.set_config("layer_types",
                    kinds_of(before, copies, model::kSlidingAttention, model::kFullAttention));
  }
  const auto choices = [&](const model::LayerList& list) {
    return list.of_layers(before.num_hidden_layers);
  };
  if (before.variants.position.is_list())
    set_deeper_list("position", choices(before.variants.position), copies, edit);
  if (before.normalizer.is_list())
    set_deeper_list("normalizer", choices(before.normalizer), copies, edit);
  std::vector<std::string> masks;
  for (const mask::MaskLayer& mask : model::own_masks(before))
    masks.insert(masks.end(), static_cast<std::size_t>(mask.count), mask.mask.text());
  if (masks.size() > 1) set_deeper_list("mask", masks, copies, edit);
}

}  // namespace masque::grow
