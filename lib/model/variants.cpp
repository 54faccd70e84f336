#include "model/variants.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/split.hpp"
#include "model/layer_list.hpp"
#include "model/rotary_config.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::model {

namespace {

constexpr std::string_view kNoPosition = "none";

nn::PositionShape shape_of(const Design& design, const nn::PositionScheme* scheme) {
  const bool gated = design.layer_kind == LayerKind::kGatedAttention;
  nn::PositionShape shape;
  shape.hidden_size =
      scheme != nullptr && scheme->facts().input ? design.embedding_size : design.hidden_size;
  shape.num_attention_heads = gated ? 1 : design.num_attention_heads;
  shape.head_size = gated ? design.attention_key_size : design.head_size;
  shape.value_size = gated ? design.intermediate_size : head_value_size(design);
  shape.value_heads = design.variants.value_heads;
  shape.max_position_embeddings = design.max_position_embeddings;
  return shape;
}

}  // namespace

std::vector<bool> layers_with_position(const Design& design) {
  std::vector<bool> all(static_cast<std::size_t>(design.num_hidden_layers), true);
  const PositionList& positions = design.variants.position;
  if (!positions.is_list()) return all;
  const std::vector<std::string> names = positions.of_layers(design.num_hidden_layers);
  for (std::size_t l = 0; l < all.size(); ++l) all[l] = names[l] != kNoPosition;
  return all;
}

void scale_listed_layers(Design& design) {
  const PositionList& positions = design.variants.position;
  if (!positions.is_list()) return;
  const std::vector<bool> has_position = layers_with_position(design);
  if (positions.scheme()->scale(position_shape(design)) == 0) {
    std::vector<std::string> names = positions.choices();
    std::erase(names, kNoPosition);
    const std::string& listed = names.front();
    throw UsageError(fmt::format("'{}': {} replaces the whole score and cannot be part of a list",
                                 escape(positions.text()), escape(listed)));
  }
  const auto is_scaled = [](const LayerDesign& layer) { return layer.attention_scale != 1; };
  if (std::ranges::any_of(design.layers, is_scaled) || design.attention_scale == 0) {
    throw UsageError(
        fmt::format("'{}': the model scales the scores of each layer differently, expected one "
                    "scheme for all layers",
                    escape(positions.text())));
  }
  const double plain = 1 / std::sqrt(static_cast<double>(position_shape(design).head_size));
  for (std::size_t l = 0; l < has_position.size(); ++l) {
    if (!has_position[l]) design.layers[l].attention_scale = plain / design.attention_scale;
  }
}

std::vector<bool> layers_with_score_scale(const Design& design) {
  std::vector<bool> all;
  if (design.variants.mixer != nullptr) {
    all.resize(static_cast<std::size_t>(design.num_hidden_layers), false);
    return all;
  }
  for (const auto& one : layer_normalizers(design))
    all.push_back(one->offset_of_learned().has_value());
  return all;
}

bool learns_score_scale(const Design& design) {
  const std::vector<bool> all = layers_with_score_scale(design);
  return std::ranges::find(all, true) != all.end();
}

double start_of_score_scale(const Design& design) {
  for (const auto& one : layer_normalizers(design)) {
    if (one->offset_of_learned()) return one->parameters().front().value;
  }
  return 0;
}

void check_score_scale(const Design& design) {
  const auto normalizers = layer_normalizers(design);
  const double start = start_of_score_scale(design);
  for (const auto& one : normalizers) {
    if (!one->offset_of_learned()) continue;
    if (one->parameters().front().value != start)
      throw UsageError(
          fmt::format("'{}': s starts with several values, expected the same in all layers",
                      escape(design.normalizer.text())));
  }
  if (!learns_score_scale(design)) return;
  const auto refuse = [&](std::string_view what) {
    throw UsageError(fmt::format("'{}' multiplies queries and cannot be combined with {}",
                                 escape(design.normalizer.text()), what));
  };
  const auto scheme = position_scheme(design);
  const bool own_terms = design.position == PositionType::kXlnet ||
                         design.position == PositionType::kT5 ||
                         design.position == PositionType::kDisentangled;
  if (own_terms || (scheme && scheme->facts().scores))
    refuse("positions that add terms to scores: use rope, learned, none or others without terms");
  if (design.variants.talking_heads != TalkingHeads::kNone) refuse("talking_heads");
  if (design.variants.largest_keys > 0) refuse("largest_keys");
  if (design.variants.previous_scores != PreviousScores::kNone) refuse("previous_scores");
}

nn::PositionShape position_shape(const Design& design) {
  return shape_of(design, position_scheme(design));
}

std::vector<nn::PositionParameter> position_parameters(const Design& design) {
  const auto scheme = position_scheme(design);
  return scheme ? scheme->parameters(position_shape(design)) : std::vector<nn::PositionParameter>{};
}

bool has_position_table(const Design& design) {
  if (design.position == PositionType::kLearned) return true;
  const auto scheme = position_scheme(design);
  if (!scheme) return false;
  nn::PositionShape shape = position_shape(design);
  const auto elements = [&](Index longest) {
    shape.max_position_embeddings = longest;
    Index sum = 0;
    for (const nn::PositionParameter& part : scheme->parameters(shape))
      sum += part.rows * part.columns;
    return sum;
  };
  return elements(8) != elements(16);
}

bool shares_position(const Design& design) {
  const auto scheme = position_scheme(design);
  return scheme && (design.variants.position_shared || scheme->facts().input);
}

std::span<const OwnPosition> own_positions() {
  static constexpr std::array<OwnPosition, 7> kAll{
      {{PositionType::kNone, "none", "no"},
       {PositionType::kLearned, "learned", "learned", true},
       {PositionType::kSinusoidal, "sinusoidal", "sinusoidal", true},
       {PositionType::kRotary, "rope", "rotary"},
       {PositionType::kXlnet, "", "XLNet's"},
       {PositionType::kT5, "", "T5's"},
       {PositionType::kDisentangled, "", "DeBERTa's"}}};
  return kAll;
}

const OwnPosition* own_position(std::string_view scheme) {
  if (scheme.empty()) return nullptr;
  const auto found = std::ranges::find(own_positions(), scheme, &OwnPosition::scheme);
  return found == own_positions().end() ? nullptr : &*found;
}

const OwnPosition& own_position(PositionType type) {
  const auto found = std::ranges::find(own_positions(), type, &OwnPosition::type);
  MASQUE_CHECK(found != own_positions().end());
  return *found;
}

bool adds_position(const Design& design) {
  const auto scheme = position_scheme(design);
  return scheme ? scheme->facts().input : own_position(design.position).input;
}

bool positions_act_in_attention(const Design& design) {
  const auto scheme = position_scheme(design);
  return design.position == PositionType::kRotary ||
         (scheme && !scheme->facts().input && scheme->name() != "none");
}

std::string position_text(std::string_view text) {
  const std::string_view spelled = trim(text);
  if (LayerList(std::string(spelled)).is_list()) return std::string(spelled);
  if (const auto parts = split_in_two(spelled, '('); parts && trim(parts->second) == ")")
    return std::string(trim(parts->first));
  return std::string(spelled);
}

void take_own_position(Design& design) {
  if (design.variants.position.is_list()) return;
  const auto scheme = position_scheme(design);
  const OwnPosition* own = scheme ? own_position(scheme->name()) : nullptr;
  if (own == nullptr) return;
  if (own->type == PositionType::kRotary) {
    const Index size = position_shape(design).head_size;
    if (size % 2 != 0)
      throw UsageError(fmt::format("the head size is {}, expected an even number for rope", size));
    const auto rotary = rotary_of(design);
    if (rotary && rotary_base(rotary->frequencies, 0)) set_rotary(*rotary, design);
    return;
  }
  if (position_text(design.variants.position.text()) != own->scheme) return;
  design.position = own->type;
  design.variants.position = {};
  design.variants.position_shared = false;
}

std::optional<RotaryDesign> rotary_of(const Design& design) {
  if (design.variants.position.is_list()) return std::nullopt;
  const auto scheme = position_scheme(design);
  const auto* found = dynamic_cast<const nn::RotaryScheme*>(scheme);
  if (found == nullptr) return std::nullopt;
  RotaryDesign rotary;
  rotary.layout = found->layout();
  rotary.frequencies = found->frequencies(position_shape(design).head_size);
  rotary.factor = found->factor();
  return rotary;
}

void set_rotary(const RotaryDesign& rotary, Design& design) {
  for (LayerDesign& layer : design.layers) layer.rotary = rotary;
  design.variants.position = {};
  design.variants.position_shared = false;
  design.position = PositionType::kRotary;
}

std::string_view mixer_name(const Design& design) { return design.variants.mixer->info().name; }

const nn::Mixer* mixer_named(std::string_view name) {
  const nn::Mixer* mixer = nn::find_mixer(name);
  if (mixer != nullptr) return mixer;
  throw UsageError(
      fmt::format("no mixer '{}', expected {}", escape(name),
                  comma_list(nn::mixers(), [](const nn::Mixer* one) { return one->info().name; })));
}

std::optional<std::string> mixer_problem(const Design& design) {
  const nn::Mixer* mixer = design.variants.mixer;
  if (mixer == nullptr || design.streams == Streams::kOne) return std::nullopt;
  if (design.streams != Streams::kFixedKeys)
    return "a mixer works with one stream only, expected attention";
  if (!mixer->info().reads_own) return std::nullopt;
  return "with this mixer a row reads its own token under any mask, expected attention or a mixer "
         "whose weights do not depend on tokens (synthesizer_random)";
}

nn::MixerShape mixer_shape(const Design& design) {
  nn::MixerShape shape;
  shape.tokens = design.max_position_embeddings;
  shape.hidden_size = design.hidden_size;
  shape.num_attention_heads = design.num_attention_heads;
  shape.inner_size = design.variants.mixer_inner_size;
  shape.attention_size = design.variants.mixer_attention_size;
  shape.kernel_size = design.variants.mixer_kernel_size;
  shape.dilation = design.variants.mixer_dilation;
  shape.chunk_size = design.variants.mixer_chunk_size;
  return shape;
}

std::vector<nn::MixerParameter> mixer_parameters(const Design& design) {
  const nn::Mixer* mixer = design.variants.mixer;
  return mixer != nullptr ? mixer->parameters(mixer_shape(design))
                          : std::vector<nn::MixerParameter>{};
}

bool joins_heads(const Design& design) {
  const VariantDesign& variants = design.variants;
  return variants.talking_heads != TalkingHeads::kNone || variants.largest_keys > 0 ||
         variants.previous_scores != PreviousScores::kNone;
}

bool needs_materialized_attention(const Design& design) {
  if (joins_heads(design)) return true;
  const auto scheme = position_scheme(design);
  return scheme && (scheme->facts().weights || scheme->facts().values);
}

DesignMasks mask_support(const Design& design) {
  DesignMasks least;
  const auto add = [&](nn::MaskSupport masks, std::string part) {
    if (masks > least.masks) least = {masks, std::move(part)};
  };
  if (const auto scheme = position_scheme(design))
    add(scheme->facts().masks, "position " + design.variants.position.text());
  if (const nn::Mixer* mixer = design.variants.mixer)
    add(mixer->info().masks, fmt::format("mixer {}", mixer_name(design)));
  if (design.convolution_size > 0)
    add(nn::MaskSupport::kFull, "the convolution of its first layer");
  return least;
}

Index softmax_heads(const Design& design) {
  const Index own = design.variants.softmax_heads;
  return own > 0 ? own : design.num_attention_heads;
}

Index value_heads(const Design& design) {
  const Index own = design.variants.value_heads;
  return own > 0 ? own : design.num_attention_heads;
}

Index projected_value_heads(const Design& design) {
  const Index own = design.variants.value_heads;
  return own > 0 ? own : design.num_key_value_heads;
}

double residual_scale(const Design& design, Index layer) {
  if (layer == 0 && !design.variants.input_residual) return 0;
  return design.variants.residual_scale;
}

Index context_width(const Design& design) {
  if (design.layer_kind == LayerKind::kGatedAttention) return design.intermediate_size;
  if (design.variants.mixer != nullptr) return design.hidden_size;
  return value_heads(design) * head_value_size(design);
}

bool scales_heads(const Design& design) {
  return design.norm_placement == NormPlacement::kNormFormer && design.variants.mixer == nullptr;
}

// Which parts of a design do not go together.

std::optional<std::string> input_residual_problem(const Design& design) {
  if (design.variants.input_residual) return std::nullopt;
  switch (design.norm_placement) {
    case NormPlacement::kReZero:
      return "ReZero needs the residual, expected another norm placement";
    case NormPlacement::kAdmin:
      return "Admin scales the residual and needs it, expected another norm placement";
    case NormPlacement::kParallel:
    case NormPlacement::kParallelShared:
      return "in parallel layers the feed-forward layer reads the embeddings directly, expected "
             "another norm placement";
    default: break;
  }
  if (design.streams == Streams::kOne) return std::nullopt;
  return "only a model with one stream starts from the embeddings of its tokens alone";
}

Index late_position_layer(const Design& design) {
  const Index layers = design.variants.late_positions;
  return layers > 0 ? design.num_hidden_layers - layers : -1;
}

std::optional<std::string> late_position_problem(const Design& design) {
  const Index layers = design.variants.late_positions;
  if (layers == 0) return std::nullopt;
  if (layers < 0 || layers > design.num_hidden_layers)
    return fmt::format("{} layers, expected 1 to {}, the model's number of layers", layers,
                       design.num_hidden_layers);
  if (design.max_position_embeddings == 0)
    return "the model has no maximum length, expected max_position_embeddings";
  if (design.streams != Streams::kOne) return "the model has several streams, expected one";
  return std::nullopt;
}

Index first_latent_layer(const Design& design) {
  const std::optional<LatentDesign>& latent = design.variants.latent;
  return design.num_hidden_layers - (latent ? latent->layers : 0);
}

void check_latent(const Design& design) {
  const std::optional<LatentDesign>& latent = design.variants.latent;
  if (!latent) return;
  const auto refuse = [](const std::string& found, std::string_view expected) {
    throw UsageError(fmt::format("a latent bottleneck with {}, expected {}", found, expected));
  };
  if (latent->layers < 1 || latent->layers > design.num_hidden_layers)
    refuse(fmt::format("{} layers", latent->layers),
           fmt::format("1 to {}, the model's number of layers", design.num_hidden_layers));
  if (latent->size < 2) refuse(fmt::format("size {}", latent->size), "at least 2");
  if (!(latent->kappa > 0 && latent->kappa <= 1e6))
    refuse(fmt::format("kappa {}", latent->kappa), "more than 0 and at most 1e6");
  if (design.streams != Streams::kOne) refuse("several streams", "one");
  if (design.variants.mixer != nullptr)
    refuse(fmt::format("{} {}", field("mixer"), mixer_name(design)), "attention");
  if (design.variants.detector) refuse("a detector", "a model without detector");
  if (design.variants.late_positions > 0)
    refuse(field("late_positions"), "a model without late positions");
  // Scores from below would carry the first token past its bottleneck.
  if (design.variants.previous_scores != PreviousScores::kNone)
    refuse(field("previous_scores"), "a model without previous scores");
  for (Index l = first_latent_layer(design); l < std::ssize(design.layers); ++l) {
    const Index weights = design.layers[static_cast<std::size_t>(l)].weights;
    if (std::ranges::count(design.layers, weights, &LayerDesign::weights) > 1)
      refuse("layers that share weights", "layers with weights of their own");
  }
}

}  // namespace masque::model
