#include "model/checkpoint/save.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "model/design.hpp"
#include "model/layer_list.hpp"
#include "model/masque_names.hpp"
#include "model/rotary_config.hpp"
#include "tensor/dtype.hpp"

namespace masque::model {
namespace {

constexpr std::uint64_t kFloatBytes = 4;

/// Row and column of the model's matrix at a flat place of the file's tensor.
std::pair<Index, Index> place_of_element(const PlacedTensor& tensor, Index flat) {
  const Index width = tensor.vector ? 1 : tensor.columns;
  switch (tensor.layout) {
    case TensorLayout::kOutIn:
    case TensorLayout::kNextRow:
    case TensorLayout::kNextColumns: return {flat / width, flat % width};
    case TensorLayout::kInOut: return {flat % tensor.rows, flat / tensor.rows};
    case TensorLayout::kHeadGroups:
    case TensorLayout::kParts: break;
  }
  const Index rows = tensor.vector ? tensor.columns : tensor.rows;
  const Index group = rows / tensor.groups;
  if (tensor.layout == TensorLayout::kParts) {
    const Index roles = std::ssize(tensor.parts) / tensor.groups;
    const Index output = flat % group;
    return {flat / (width * group) * group + output % roles * (group / roles) + output / roles,
            flat / group % width};
  }
  const Index head = flat / width / group;
  Index row = flat / width % group;
  Index first = 0;
  for (const TensorPart& part : tensor.parts) {
    const Index own = part.rows / tensor.groups;
    if (row < own) return {first + head * own + row, flat % width};
    row -= own;
    first += part.rows;
  }
  MASQUE_CHECK(false);
  return {};
}

store::OutputTensor output_of(std::shared_ptr<const NamedTensor> tensor) {
  store::OutputTensor output;
  output.info.name = tensor->name;
  output.info.dtype = DType::kF32;
  output.info.shape = tensor->placed.shape;
  store::Computed source;
  source.fill = [tensor = std::move(tensor)](std::uint64_t offset, MutableBytes out) {
    std::vector<float> values(out.size() / kFloatBytes);
    tensor->read(offset / kFloatBytes, values);
    std::ranges::copy(std::as_bytes(std::span(values)), out.begin());
  };
  output.source = std::move(source);
  return output;
}

}  // namespace

void NamedTensor::read(std::uint64_t begin, std::span<float> out) const {
  const auto first = static_cast<Index>(begin);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto [row, column] = place_of_element(placed, first + static_cast<Index>(i));
    std::size_t p = 0;
    while (row >= placed.parts[p].rows) row -= placed.parts[p++].rows;
    const TensorPart& part = placed.parts[p];
    out[i] = placed.vector ? parts[p].at(part.first_row, part.first_column + row)
                           : parts[p].at(row, column);
  }
}

store::OutputTensor output_tensor(NamedTensor tensor) {
  return output_of(std::make_shared<const NamedTensor>(std::move(tensor)));
}

std::vector<NamedTensor> named_tensors(const ModelPlan& plan, ModelWeights<float> weights) {
  const HeadDesign& head = plan.design.head;
  const HeadPlan* head_plan = head.kind == HeadKind::kNone ? nullptr : head_like(plan, head);
  MASQUE_CHECK(head.kind == HeadKind::kNone || head_plan != nullptr);
  std::vector<NamedTensor> tensors;
  for (PlacedTensor& placed : placed_tensors(plan, head_plan)) {
    NamedTensor tensor;
    tensor.name = written_name(plan, placed);
    for (const TensorPart& part : placed.parts) {
      const Weight<float>& weight = weight_of(network_of(weights, placed.detector), part.role,
                                              placed.bias, part.layer, part.part);
      const MatrixView<const float> view = weight.view;
      if (!weight)
        throw UsageError(fmt::format("the design needs tensor '{}', which the model does not have",
                                     tensor.name));
      const bool some = placed.layout == TensorLayout::kNextColumns;
      MASQUE_CHECK(some ? part.first_column + part.rows <= view.columns
                        : view.columns == (placed.vector ? part.rows : placed.columns));
      MASQUE_CHECK(placed.vector ? part.first_row < view.rows : part.rows == view.rows);
      tensor.parts.push_back(view);
    }
    tensor.placed = std::move(placed);
    for (std::string& name : written_names(plan, tensor.placed)) {
      tensor.name = std::move(name);
      tensors.push_back(tensor);
    }
  }
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  return tensors;
}

ModelFiles model_files(const SavedDesign& saved, const ModelWeights<float>& weights,
                       const std::string& prefix) {
  ModelFiles files;
  files.weights.name = prefix + "model.safetensors";
  files.weights.metadata = {{"format", "pt"}};
  for (NamedTensor& tensor : named_tensors(saved.plan, weights)) {
    files.weights.tensors.push_back(output_tensor(std::move(tensor)));
  }
  files.config = {prefix + "config.json", store::Literal{saved.config}, saved.config.size(), 0644};
  return files;
}

void save_model(const std::string& path, const Design& design, const ModelWeights<float>& weights,
                const SaveOptions& options) {
  save_model(path, model_files(saved_design(design, options.training), weights), options);
}

void save_model(const std::string& path, ModelFiles files, const SaveOptions& options) {
  std::vector<store::OutputExtra> extras = options.files;
  extras.push_back(std::move(files.config));
  std::vector<store::OutputWeights> all = options.more;
  all.insert(all.begin(), std::move(files.weights));
  store::write_checkpoint_folder(path, all, extras, options.write);
}

// config.json of the families that trained models are saved as.

namespace {

// config.json being written.

/// A JSON object with members in the order of their calls. Numbers are written so that they are
/// read back the same.
class ConfigText {
 public:
  /// Begins the object.
  ConfigText() { json_.begin_object(); }
  ConfigText(const ConfigText&) = delete;
  ConfigText& operator=(const ConfigText&) = delete;

  /// Adds the member `name`; `value` is what JsonWriter writes: nothing becomes null.
  template <class T>
  void member(std::string_view name, const T& value) {
    json_.member(name, value);
  }
  /// Adds the member `name`, of which the value `json` is JSON already.
  void raw_member(std::string_view name, std::string_view json) { json_.raw_member(name, json); }
  /// Adds the member "architectures", a list of the class `name` alone.
  void architecture(std::string_view name) { json_.key("architectures").array(std::array{name}); }

  /// The text, complete: the last call.
  std::string finish() {
    json_.end_object();
    return text_ + "\n";
  }

 private:
  std::string text_;
  JsonWriter json_{text_, JsonLayout::kLines};
};

using Config = std::optional<std::string>;

/// Whether head and sizes are such as BERT's relatives can have: what the plan would refuse.
bool is_plain(const Design& design) {
  return design.layer_kind == LayerKind::kTransformer && design.variants == VariantDesign{} &&
         design.max_position_embeddings > 0 && design.num_hidden_layers > 0 &&
         design.hidden_size == design.num_attention_heads * design.head_size &&
         !word_of(kActivations, design.activation).empty();
}

/// Transformers' encoders cannot do without token types.
bool is_encoder(const Design& design) { return is_plain(design) && design.type_vocab_size > 0; }

void add_common(const Design& design, const TrainingConfig& training, ConfigText& to) {
  to.member("vocab_size", design.vocab_size);
  to.member("pad_token_id", design.pad_token_id);
  if (design.mask_token_id) to.member("mask_token_id", design.mask_token_id);
  to.member("tie_word_embeddings", design.head.kind == HeadKind::kNone || design.head.tied);
  to.member("initializer_range", training.initializer_range);
  to.member("dtype", "float32");
}

/// model_type, and the class that has the design's head.
void add_type(const Design& design, std::string_view type, ConfigText& to) {
  to.member("model_type", type);
  to.architecture(class_name(*find_family(type), type, design.head.kind));
}

/// What BERT's spelling has after the sizes of a layer.
void add_after_sizes(const Design& design, const TrainingConfig& training, ConfigText& to) {
  to.member("hidden_act", word_of(kActivations, design.activation));
  to.member("max_position_embeddings", design.max_position_embeddings);
  to.member("type_vocab_size", design.type_vocab_size);
  to.member("layer_norm_eps", design.norm.epsilon);
  to.member("hidden_dropout_prob", training.hidden_dropout);
  to.member("attention_probs_dropout_prob", training.attention_dropout);
}

void add_encoder(const Design& design, const TrainingConfig& training, ConfigText& to) {
  add_common(design, training, to);
  to.member("hidden_size", design.hidden_size);
  to.member("num_hidden_layers", design.num_hidden_layers);
  to.member("num_attention_heads", design.num_attention_heads);
  to.member("intermediate_size", design.intermediate_size);
  add_after_sizes(design, training, to);
  if (design.mask == DefaultMask::kCausal) to.member("is_decoder", true);
}

Config bert(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "bert", to);
  add_encoder(design, training, to);
  return to.finish();
}

Config roformer(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design) || design.head_size % 2 != 0 || design.layers.empty()) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "roformer", to);
  add_encoder(design, training, to);
  to.member("embedding_size", design.embedding_size);
  to.member("rotary_value", design.layers[0].rotary.values);
  if (design.norm.kind == kernel::Norm::kRms) {
    to.member("norm_type", "rms_norm");
    to.member("use_bias", false);
  }
  return to.finish();
}

Config gpt2(const Design& design, const TrainingConfig& training) {
  if (!is_plain(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "gpt2", to);
  add_common(design, training, to);
  to.member("n_embd", design.hidden_size);
  to.member("n_layer", design.num_hidden_layers);
  to.member("n_head", design.num_attention_heads);
  to.member("n_inner", design.intermediate_size);
  to.member("n_positions", design.max_position_embeddings);
  const bool by_layer = design.layers.size() > 1 && design.layers[1].attention_scale != 1;
  if (by_layer) to.member("scale_attn_by_inverse_layer_idx", true);
  to.member("activation_function", word_of(kActivations, design.activation));
  to.member("layer_norm_epsilon", design.norm.epsilon);
  to.member("embd_pdrop", training.hidden_dropout);
  to.member("resid_pdrop", training.hidden_dropout);
  to.member("attn_pdrop", training.attention_dropout);
  to.member("bos_token_id", nullptr);
  to.member("eos_token_id", nullptr);
  return to.finish();
}

Config electra(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "electra", to);
  add_encoder(design, training, to);
  to.member("embedding_size", design.embedding_size);
  return to.finish();
}

Config gau_alpha(const Design& design, const TrainingConfig& training) {
  constexpr std::array<std::string_view, 3> kKnown{"softmax_plus", "softmax", "squared_relu"};
  if (design.layer_kind != LayerKind::kGatedAttention || design.norm_weights ||
      design.embedding_size != design.hidden_size || design.max_position_embeddings == 0 ||
      design.attention_key_size % 2 != 0 ||
      std::ranges::find(kKnown, design.normalizer.text()) == kKnown.end() ||
      word_of(kActivations, design.activation).empty()) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "gau_alpha", to);
  add_common(design, training, to);
  to.member("hidden_size", design.hidden_size);
  to.member("num_hidden_layers", design.num_hidden_layers);
  to.member("intermediate_size", design.intermediate_size);
  to.member("attention_key_size", design.attention_key_size);
  add_after_sizes(design, training, to);
  to.member("normalization", design.normalizer.text());
  to.member("attention_scale", design.attention_scale != 1);
  to.member("use_bias", design.use_bias);
  return to.finish();
}

Config tta(const Design& design, const TrainingConfig& training) {
  if (!is_plain(design) || design.streams != Streams::kFixedKeys ||
      design.mask != DefaultMask::kOthers) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "tta", to);
  add_encoder(design, training, to);
  return to.finish();
}

// config.json of the family `masque`: the keys that family/masque.cpp reads.

void add_sizes(const Design& design, ConfigText& to) {
  to.member("vocab_size", design.vocab_size);
  to.member("hidden_size", design.hidden_size);
  to.member("embedding_size", design.embedding_size);
  to.member("num_hidden_layers", design.num_hidden_layers);
  to.member("num_attention_heads", design.num_attention_heads);
  if (design.layer_kind == LayerKind::kGatedAttention) {
    to.member("attention_key_size", design.attention_key_size);
  } else {
    to.member("num_key_value_heads", design.num_key_value_heads);
    to.member("head_size", design.head_size);
    to.member("value_size", head_value_size(design));
  }
  to.member("intermediate_size", design.intermediate_size);
  to.member("type_vocab_size", design.type_vocab_size);
  to.member("max_position_embeddings", design.max_position_embeddings);
  if (design.positions_after_projection) to.member("positions_after_projection", true);
  to.member("pad_token_id", design.pad_token_id);
  to.member("mask_token_id", design.mask_token_id);
}

void add_layer(const Design& design, ConfigText& to) {
  to.member("layer_kind", word_of(kLayerKinds, design.layer_kind));
  to.member("norm_placement", word_of(kNormPlacements, design.norm_placement));
  to.member("norm", word_of(kNorms, design.norm.kind));
  to.member("layer_norm_eps", design.norm.epsilon);
  if (design.norm.weight_offset != 0) to.member("norm_weight_offset", design.norm.weight_offset);
  to.member("norm_weights", design.norm_weights);
  to.member("embedding_norm", design.embedding_norm.has_value());
  to.member("final_norm", design.final_norm);
  to.member("residual_scale", design.variants.residual_scale);
  if (design.residual_multiplier != 1) to.member("residual_multiplier", design.residual_multiplier);
  if (!design.variants.input_residual) to.member("input_residual", false);
  if (design.variants.late_positions > 0)
    to.member("late_positions", design.variants.late_positions);
  to.member("use_bias", design.use_bias);
  to.member("hidden_act", word_of(kActivations, design.activation));
  to.member("gated", design.gated);
  to.member("embedding_scale", design.embedding_scale);
}

/// Of each layer a text; as one text, a list where they differ.
template <class F>
std::string by_layer(const Design& design, const F& text_of) {
  std::vector<std::string> texts;
  for (const LayerDesign& layer : design.layers) texts.push_back(text_of(layer));
  return texts.empty() ? std::string() : LayerList::of(texts).text();
}

/// Other angles than plain ones are not read back, so that this family is not taken.
void add_angles(const Design& design, ConfigText& to) {
  std::size_t pairs = 0;
  for (const LayerDesign& layer : design.layers)
    pairs = std::max(pairs, layer.rotary.frequencies.size());
  const auto base = [](const LayerDesign& layer) {
    return rotary_base(layer.rotary.frequencies, 0).value_or(10000);
  };
  const std::string thetas = by_layer(design, [&](const LayerDesign& layer) {
    return layer.rotary.frequencies.empty() ? "none" : fmt::format("{}", base(layer));
  });
  const bool same = LayerList(thetas).choices().size() <= 1 && pairs > 0;
  if (same) {
    to.member("rope_theta", base(design.layers.front()));
  } else {
    to.member("rope_theta", thetas);
  }
  const auto size = static_cast<Index>(2 * pairs);
  if (pairs > 0 && size != design.head_size)
    to.member("partial_rotary_factor",
              static_cast<double>(size) / static_cast<double>(design.head_size));
}

void add_windows(const Design& design, ConfigText& to) {
  const std::string windows = by_layer(design, [](const LayerDesign& layer) {
    return layer.window ? fmt::format("{}", *layer.window) : "none";
  });
  if (windows.empty() || windows == "none") return;
  if (LayerList(windows).choices().size() > 1) return to.member("window", windows);
  to.member("window", *design.layers.front().window);
}

void add_attention(const Design& design, ConfigText& to) {
  const LayerDesign layer = design.layers.empty() ? LayerDesign{} : design.layers[0];
  const VariantDesign& variants = design.variants;
  if (variants.position.empty()) {
    to.member("position_embedding_type", word_of(kPositionTypes, design.position));
    if (design.position == PositionType::kSinusoidal) {
      to.member("sinusoidal_interleaved", design.sinusoidal_interleaved);
    }
    if (design.position == PositionType::kRotary) {
      to.member("rotary_interleaved", layer.rotary.layout == kernel::RotaryLayout::kAdjacent);
      add_angles(design, to);
    }
  } else {
    to.member("position", variants.position.text());
    to.member("position_shared", variants.position_shared);
  }
  add_windows(design, to);
  to.member("query_key_norm", word_of(kQueryKeyNorms, design.query_key_norm));
  if (design.clip_qkv > 0) to.member("clip_qkv", design.clip_qkv);
  if (design.clip_after_norms) to.member("clip_after_norms", true);
  if (design.score_cap > 0) to.member("attn_logit_softcapping", design.score_cap);
  to.member("normalizer", design.normalizer.text());
  to.member("attention_scale", design.attention_scale);
  to.member("talking_heads", word_of(kTalkingHeads, variants.talking_heads));
  if (variants.softmax_heads > 0) to.member("softmax_heads", variants.softmax_heads);
  if (variants.value_heads > 0) to.member("value_heads", variants.value_heads);
  if (variants.largest_keys > 0) to.member("largest_keys", variants.largest_keys);
  to.member("previous_scores", word_of(kPreviousScores, variants.previous_scores));
  if (variants.mixer != nullptr) {
    to.member("mixer", variants.mixer->info().name);
    to.member("mixer_inner_size", variants.mixer_inner_size);
    to.member("mixer_attention_size", variants.mixer_attention_size);
    to.member("mixer_kernel_size", variants.mixer_kernel_size);
    to.member("mixer_dilation", variants.mixer_dilation);
    to.member("mixer_chunk_size", variants.mixer_chunk_size);
    if (!variants.mixer_output) to.member("mixer_output", false);
  }
  to.member("mask", mask_word(design));
  to.member("streams", word_of(kStreams, design.streams));
  if (variants.detector) to.raw_member("detector", detector_json(*variants.detector));
  if (variants.latent) to.raw_member("latent", latent_json(*variants.latent));
}

void add_head(const HeadDesign& head, ConfigText& to) {
  to.member("head", word_of(kHeads, head.kind));
  if (head.kind == HeadKind::kNone) return;
  to.member("head_transform", head.transform);
  if (head.transform) to.member("head_act", word_of(kActivations, head.activation));
  to.member("head_norm", head.norm.has_value());
  to.member("tie_word_embeddings", head.tied);
  to.member("head_scale", head.scale);
  if (head.shifted) to.member("head_shifted", true);
  if (head.logit_cap > 0) to.member("final_logit_softcapping", head.logit_cap);
}

/// The config.json of the family `masque` for `design`, with what it says of `training` but the
/// begin token; nothing if it has no word for an activation or the positions. Other parts that the
/// family cannot describe are left out: the caller compares what it reads back (saved_design).
std::optional<std::string> masque_config(const Design& design, const TrainingConfig& training) {
  const bool spelled =
      !word_of(kActivations, design.activation).empty() &&
      (!design.head.transform || !word_of(kActivations, design.head.activation).empty()) &&
      (!design.variants.position.empty() || !word_of(kPositionTypes, design.position).empty());
  if (!spelled) return std::nullopt;
  ConfigText to;
  to.member("model_type", "masque");
  add_sizes(design, to);
  add_layer(design, to);
  add_attention(design, to);
  add_head(design.head, to);
  to.member("initializer_range", training.initializer_range);
  to.member("hidden_dropout_prob", training.hidden_dropout);
  to.member("attention_probs_dropout_prob", training.attention_dropout);
  to.member("dtype", "float32");
  return to.finish();
}

struct Writer {
  std::string_view family;
  Config (*write)(const Design&, const TrainingConfig&);
};
constexpr std::array<Writer, 7> kWriters{{{"bert", bert},
                                          {"roformer", roformer},
                                          {"gpt2", gpt2},
                                          {"electra", electra},
                                          {"gau_alpha", gau_alpha},
                                          {"tta", tta},
                                          {"masque", masque_config}}};

/// The plan that a family makes of the text, with this head if it has it.
std::optional<ModelPlan> plan_from(std::string_view family, const std::string& text,
                                   const HeadDesign& head) {
  ModelPlan plan =
      find_family(family)->plan(FamilyConfig(store::ModelConfig::parse(text, "config.json")));
  if (head.kind != HeadKind::kNone && head_like(plan, head) == nullptr) return std::nullopt;
  plan.design.head = head;
  return plan;
}

}  // namespace

SavedDesign saved_design(const Design& design, const TrainingConfig& training) {
  for (const Writer& writer : kWriters) {
    const Config text = writer.write(design, training);
    if (!text) continue;
    std::optional<ModelPlan> plan = plan_from(writer.family, *text, design.head);
    if (!plan || !same_design(plan->design, design)) continue;
    return {std::string(writer.family), with_begin_token(*text, training), *std::move(plan)};
  }
  throw UsageError(
      "no family has this design: its combination of options cannot be written as config.json");
}

std::string with_begin_token(const std::string& config, const TrainingConfig& training) {
  if (!training.begin_token) return erase_json_member(config, {kBeginToken});
  return set_json_member(config, {kBeginToken}, fmt::format("{}", *training.begin_token));
}

}  // namespace masque::model
