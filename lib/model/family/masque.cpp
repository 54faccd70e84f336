// The family of our own: any combination of what masque has, for designs that have no family of
// their own. Keys and tensor names: lib/model/README.md.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/parse_number.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/changed_family.hpp"
#include "model/detector.hpp"
#include "model/encoder_family.hpp"
#include "model/masks.hpp"
#include "model/masque_names.hpp"
#include "model/masque_rows.hpp"
#include "model/rotary_config.hpp"
#include "model/variants.hpp"

namespace masque::model {
namespace {

constexpr Index kMostHeads = 1 << 16;
constexpr Index kLongestWindow = (Index{1} << 31) - 1;
constexpr Index kWidest = 1 << 20;  // some schemes make start values where sizes are wanted

/// Lets nn judge what a key says: InputError naming the key for what is no such variant.
void check_variant(const FamilyConfig& config, std::string_view name,
                   const std::function<void()>& use) {
  if (const auto problem = usage_error_message(use)) config.fail(name, *problem);
}

void read_sizes(Design& design, const FamilyConfig& config) {
  design.vocab_size = config.size({"vocab_size"}, 30522);
  design.hidden_size = config.size({"hidden_size"}, 256);
  if (design.hidden_size > kWidest) config.refuse("hidden_size", fmt::format("1 to {}", kWidest));
  design.embedding_size = config.size({"embedding_size"}, design.hidden_size);
  if (design.embedding_size > kWidest) {
    config.refuse("embedding_size", fmt::format("1 to {}", kWidest));
  }
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, 4);
  design.intermediate_size = config.size({"intermediate_size"}, 4 * design.hidden_size);
  design.type_vocab_size = config.count({"type_vocab_size"}, 0);
  design.max_position_embeddings = config.count({"max_position_embeddings"}, 512);
  design.pad_token_id = config.optional_count("pad_token_id");
  read_mask_token(design, config);
}

void read_own_heads(Design& design, const FamilyConfig& config) {
  if (design.layer_kind == LayerKind::kGatedAttention) {
    config.expect_number("num_attention_heads", 1);
    design.attention_key_size = config.size({"attention_key_size"}, 128);
    design.head_size = design.attention_key_size;
    return;
  }
  design.num_attention_heads = config.size({"num_attention_heads"}, 4);
  if (design.num_attention_heads > kMostHeads)
    config.refuse("num_attention_heads", fmt::format("1 to {}", kMostHeads));
  design.num_key_value_heads = config.size({"num_key_value_heads"}, design.num_attention_heads);
  if (design.num_attention_heads % design.num_key_value_heads != 0) {
    config.refuse("num_key_value_heads", "a divisor of num_attention_heads");
  }
  if (!config.has("head_size") && design.hidden_size % design.num_attention_heads != 0) {
    config.refuse("num_attention_heads",
                  fmt::format("a divisor of {}, or {} with it", config.called("hidden_size"),
                              config.called("head_size")));
  }
  design.head_size = config.size(
      {"head_size"}, std::max<Index>(1, design.hidden_size / design.num_attention_heads));
  design.value_size = config.count({"value_size"}, 0);
  if (design.value_size == design.head_size) design.value_size = 0;
}

void read_norms(Design& design, const FamilyConfig& config) {
  design.norm_placement =
      read_word(config, "norm_placement", kNormPlacements, NormPlacement::kPost);
  const bool post = design.norm_placement == NormPlacement::kPost;
  design.norm.kind = read_word(config, "norm", kNorms, kernel::Norm::kLayer);
  design.norm.epsilon = config.positive("layer_norm_eps", 1e-12);
  design.norm.weight_offset = config.number("norm_weight_offset", 0);
  design.norm_weights = config.flag("norm_weights", true);
  if (!design.norm_weights && design.norm.weight_offset != 0)
    config.refuse("norm_weight_offset", "0: norms have no weights");
  const bool at_end = norms_last_sum(design.norm_placement);
  if (config.flag("embedding_norm", !at_end)) design.embedding_norm = design.norm;
  design.final_norm = config.flag("final_norm", at_end);
  design.variants.residual_scale = config.positive("residual_scale", 1);
  if (!post && design.variants.residual_scale != 1) {
    config.refuse("residual_scale", "1: only norm_placement post supports other values");
  }
  design.variants.input_residual = config.flag("input_residual", true);
  design.residual_multiplier = config.positive("residual_multiplier", 1);
  if (norms_sum(design.norm_placement) && design.residual_multiplier != 1)
    config.refuse("residual_multiplier", "1 where norms follow the sum with the residual");
}

/// The option `name`, one value for all layers or a list of one a layer, as texts; empty: it is
/// absent.
std::vector<std::string> read_by_layer(const Design& design, const FamilyConfig& config,
                                       std::string_view name) {
  if (!config.has(name)) return {};
  const auto layers = static_cast<std::size_t>(design.num_hidden_layers);
  const std::string spelled = config.raw().spelling(name);
  if (!spelled.starts_with('"')) return std::vector<std::string>(layers, spelled);
  std::vector<std::string> values;
  check_variant(config, name, [&] {
    values = LayerList(config.text(name, "")).of_layers(design.num_hidden_layers);
  });
  return values;
}

constexpr std::string_view kNothing = "none";

void read_windows(Design& design, const FamilyConfig& config) {
  const std::vector<std::string> windows = read_by_layer(design, config, "window");
  for (std::size_t l = 0; l < windows.size(); ++l) {
    if (windows[l] == kNothing || windows[l] == "-1") continue;
    const auto window = parse_number<Index>(windows[l]);
    if (!window || *window < 0 || *window > kLongestWindow)
      config.refuse("window", fmt::format("0 to {}, or none, of each layer", kLongestWindow));
    design.layers[l].window = *window;
  }
}

void read_rotary_layers(Design& design, const FamilyConfig& config) {
  check_rotary_size(config, "head_size", design.head_size);
  const bool adjacent = config.flag("rotary_interleaved", true);
  const double share = config.positive("partial_rotary_factor", 1);
  const Index size = std::llround(static_cast<double>(design.head_size) * std::min(share, 1.0));
  if (share > 1) config.refuse("partial_rotary_factor", "at most 1");
  check_rotary_size(config, "partial_rotary_factor", size);
  std::vector<std::string> thetas = read_by_layer(design, config, "rope_theta");
  if (thetas.empty()) thetas.assign(design.layers.size(), "10000");
  for (std::size_t l = 0; l < thetas.size(); ++l) {
    RotaryDesign& rotary = design.layers[l].rotary;
    rotary.layout = adjacent ? kernel::RotaryLayout::kAdjacent : kernel::RotaryLayout::kHalf;
    if (thetas[l] == kNothing) continue;
    const auto theta = parse_number<double>(thetas[l]);
    if (!theta || !(*theta >= 1e-30 && *theta <= 1e30))
      config.refuse("rope_theta", "1e-30 to 1e30, or none, of each layer");
    rotary = plain_rotary(rotary.layout, *theta, size);
  }
}

void read_own_position(Design& design, const FamilyConfig& config) {
  design.position =
      read_word(config, "position_embedding_type", kPositionTypes, PositionType::kLearned);
  if (design.position == PositionType::kLearned && design.max_position_embeddings == 0) {
    config.refuse("max_position_embeddings", "at least 1: positions are learned");
  }
  if (design.position == PositionType::kLearned)
    design.positions_after_projection = config.flag("positions_after_projection", false);
  if (design.positions_after_projection && design.embedding_size == design.hidden_size)
    config.refuse("positions_after_projection", "false: embedding_size is hidden_size");
  if (design.position == PositionType::kSinusoidal) {
    design.sinusoidal_interleaved = config.flag("sinusoidal_interleaved", false);
  }
}

void read_position(Design& design, const FamilyConfig& config) {
  const bool alibi =
      !config.has("position") && config.text("position_embedding_type", "") == "alibi";
  const std::string position = alibi ? "alibi" : config.text("position", "");
  fill_layers(design);
  read_windows(design, config);
  if (position.empty()) {
    read_own_position(design, config);
    if (design.position == PositionType::kRotary) read_rotary_layers(design, config);
  } else {
    if (!alibi && config.has("position_embedding_type")) {
      config.refuse("position_embedding_type", "no value together with position");
    }
    check_variant(config, "position", [&] {
      design.variants.position = position;
      layers_with_position(design);
    });
    design.position = PositionType::kNone;
    design.variants.position_shared = config.flag("position_shared", false);
  }
}

/// How many heads the two mixings of talking heads give.
void read_mixed_heads(Design& design, const FamilyConfig& config) {
  VariantDesign& variants = design.variants;
  const auto read = [&](const char* name, bool mixed, std::string_view where) {
    const Index heads = config.count({name}, 0);
    if (heads > kMostHeads) config.refuse(name, fmt::format("0 to {}", kMostHeads));
    if (heads == 0 || heads == design.num_attention_heads) return Index{0};
    if (!mixed)
      config.refuse(name, fmt::format("{}, or {} {}", config.called("num_attention_heads"),
                                      config.called("talking_heads"), where));
    return heads;
  };
  variants.softmax_heads =
      read("softmax_heads", variants.talking_heads == TalkingHeads::kBoth, "\"both\"");
  variants.value_heads =
      read("value_heads", mixes_weights(variants.talking_heads), "\"after\" or \"both\"");
  if (variants.value_heads > 0 && design.num_key_value_heads != design.num_attention_heads)
    config.refuse("value_heads", "num_attention_heads where keys and values are shared");
}

/// A bound: a number above 0, or 0 for none.
double read_bound(const FamilyConfig& config, std::string_view name) {
  return config.number(name, 0) == 0 ? 0 : config.positive(name, 1);
}

void read_bounds(Design& design, const FamilyConfig& config) {
  design.query_key_norm = read_word(config, "query_key_norm", kQueryKeyNorms, QueryKeyNorm::kNone);
  design.clip_qkv = read_bound(config, "clip_qkv");
  design.clip_after_norms = config.flag("clip_after_norms", false);
  design.score_cap = read_bound(config, "attn_logit_softcapping");
  if (design.clip_after_norms &&
      (design.clip_qkv == 0 || design.query_key_norm == QueryKeyNorm::kNone))
    config.refuse("clip_after_norms",
                  fmt::format("false without {} and {}", config.called("clip_qkv"),
                              config.called("query_key_norm")));
  if (design.layer_kind != LayerKind::kGatedAttention) return;
  if (design.query_key_norm != QueryKeyNorm::kNone)
    config.refuse("query_key_norm", "\"none\" with gated attention");
  if (design.clip_qkv > 0) config.refuse("clip_qkv", "0 with gated attention");
  if (design.residual_multiplier != 1)
    config.refuse("residual_multiplier", "1 with gated attention");
}

void read_attention(Design& design, const FamilyConfig& config) {
  check_variant(config, "normalizer", [&] {
    design.normalizer = config.text("normalizer", "softmax");
    layer_normalizers(design);
  });
  double scale = 1 / std::sqrt(static_cast<double>(design.head_size));
  if (const auto scheme = position_scheme(design)) {
    const nn::PositionShape shape = position_shape(design);
    if (design.max_position_embeddings == 0 && !scheme->parameters(shape).empty()) {
      config.refuse("max_position_embeddings", "at least 1: the scheme has parameters");
    }
    scale = scheme->scale(shape);
  }
  design.attention_scale = config.number("attention_scale", scale);
  if (scale == 0 && design.attention_scale != 0) {
    config.refuse("attention_scale", "0: the position scheme makes the whole score");
  }
  check_variant(config, "position", [&] { scale_listed_layers(design); });
  read_bounds(design, config);
  VariantDesign& variants = design.variants;
  variants.talking_heads = read_word(config, "talking_heads", kTalkingHeads, TalkingHeads::kNone);
  variants.previous_scores =
      read_word(config, "previous_scores", kPreviousScores, PreviousScores::kNone);
  if (design.layer_kind == LayerKind::kGatedAttention &&
      variants.talking_heads != TalkingHeads::kNone) {
    config.refuse("talking_heads", "\"none\": gated attention has one head");
  }
  read_mixed_heads(design, config);
  variants.largest_keys = config.count({"largest_keys"}, 0);
  check_variant(config, "normalizer", [&] { check_score_scale(design); });
}

void read_mixer(Design& design, const FamilyConfig& config) {
  VariantDesign& variants = design.variants;
  const std::string mixer = config.text("mixer", "");
  if (mixer.empty()) return;
  variants.mixer_inner_size = config.count({"mixer_inner_size"}, 0);
  variants.mixer_attention_size = config.size({"mixer_attention_size"}, 64);
  variants.mixer_kernel_size = config.size({"mixer_kernel_size"}, 7);
  variants.mixer_dilation = config.size({"mixer_dilation"}, 1);
  variants.mixer_chunk_size = config.size({"mixer_chunk_size"}, 256);
  variants.mixer_output = config.flag("mixer_output", true);
  if (design.layer_kind == LayerKind::kGatedAttention) {
    config.refuse("mixer", "none: gated attention cannot have a mixer");
  }
  if (needs_materialized_attention(design)) {
    config.refuse("mixer",
                  fmt::format("none with {}, {}, {} and position schemes of weights and values",
                              config.called("talking_heads"), config.called("largest_keys"),
                              config.called("previous_scores")));
  }
  if (design.query_key_norm != QueryKeyNorm::kNone || design.clip_qkv > 0 || design.score_cap > 0)
    config.refuse("mixer",
                  fmt::format("none with {}, {} and {}", config.called("query_key_norm"),
                              config.called("clip_qkv"), config.called("attn_logit_softcapping")));
  if (positions_act_in_attention(design)) {
    config.refuse("mixer", "none with positions that act on queries, keys or scores");
  }
  check_variant(config, "mixer", [&] {
    variants.mixer = mixer_named(mixer);
    mixer_parameters(design);
  });
}

void read_streams(Design& design, const FamilyConfig& config) {
  design.streams = read_word(config, "streams", kStreams, Streams::kOne);
  const bool fixed = design.streams == Streams::kFixedKeys;
  design.mask = fixed ? DefaultMask::kOthers : DefaultMask::kFull;
  const bool towers = design.streams == Streams::kTowers;
  if (towers) check_variant(config, "streams", [&] { set_towers(design); });
  read_mask(config, design);
  if (const auto problem = input_residual_problem(design)) config.fail("input_residual", *problem);
  if (design.streams == Streams::kOne) return;
  if (const auto problem = mixer_problem(design)) config.refuse("streams", "\"one\": " + *problem);
  if (design.streams == Streams::kTwo && adds_position(design)) {
    config.refuse(
        "streams",
        "another value than \"two\": the query stream does not see positions of the input");
  }
}

std::string default_activation(const Design& design) {
  return design.layer_kind == LayerKind::kGatedAttention ? "silu" : "gelu";
}

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "masque";
  design.model_type = config.raw().model_type();
  read_sizes(design, config);
  design.layer_kind = read_word(config, "layer_kind", kLayerKinds, LayerKind::kTransformer);
  const bool gated_attention = design.layer_kind == LayerKind::kGatedAttention;
  design.use_bias = config.flag("use_bias", true);
  design.activation = config.activation("hidden_act", default_activation(design));
  design.gated = config.flag("gated", false);
  if (gated_attention && design.gated)
    config.fail("gated", fmt::format("with {} gated_attention units are gated already",
                                     config.called("layer_kind")));
  design.embedding_scale = config.positive("embedding_scale", 1);
  read_own_heads(design, config);
  read_norms(design, config);
  if (gated_attention && design.norm_placement != NormPlacement::kPost &&
      design.norm_placement != NormPlacement::kPre) {
    config.refuse("norm_placement", "\"post\" or \"pre\" with gated attention");
  }
  read_position(design, config);
  read_attention(design, config);
  read_mixer(design, config);
  read_streams(design, config);
  read_detector(config, design);
  design.variants.late_positions = config.count({"late_positions"}, 0);
  if (const auto problem = late_position_problem(design)) config.fail("late_positions", *problem);
  read_latent(config, design);
  return design;
}

HeadDesign read_head(const Design& design, const FamilyConfig& config) {
  HeadDesign head;
  head.kind =
      read_word(config, "head", kHeads,
                design.mask == DefaultMask::kCausal ? HeadKind::kCausal : HeadKind::kMasked);
  if (head.kind == HeadKind::kNone) return head;
  const bool vocabulary = !has_one_number(head.kind);
  head.transform = config.flag("head_transform", true);
  const bool narrow = design.embedding_size != design.hidden_size;
  if (vocabulary && narrow && !head.transform) {
    config.refuse("head_transform", "true: embedding_size is not hidden_size");
  }
  if (design.streams == Streams::kTowers && !head.transform)
    config.refuse("head_transform", "true: the head reads two towers");
  if (head.transform) {
    head.activation =
        config.activation("head_act", config.text("hidden_act", default_activation(design)));
  }
  if (config.flag("head_norm", vocabulary && head.transform)) head.norm = design.norm;
  head.tied = vocabulary && config.flag("tie_word_embeddings", true);
  head.scale = config.positive("head_scale", 1);
  head.shifted = config.flag("head_shifted", false);
  Design shifted = design;
  shifted.head = head;
  if (const auto problem = shifted_head_problem(shifted)) config.fail("head_shifted", *problem);
  head.logit_cap = read_bound(config, "final_logit_softcapping");
  if (!vocabulary && head.logit_cap > 0)
    config.refuse("final_logit_softcapping", "0: the head has no vocabulary");
  return head;
}

ModelPlan make_plan(const FamilyConfig& config) {
  if (std::optional<ModelPlan> changed = read_changed(config)) return *std::move(changed);
  ModelPlan plan;
  plan.design = read_design(config);
  plan.rows = masque_rows(plan.design);
  for (TensorRow& row : detector_rows(plan.design)) plan.rows.push_back(std::move(row));
  for (TensorRow& row : latent_rows(plan.design)) plan.rows.push_back(std::move(row));
  const HeadDesign head = read_head(plan.design, config);
  if (head.kind != HeadKind::kNone) plan.heads = {masque_head(plan.design, head)};
  return plan;
}

const Family kFamily{
    .name = "masque",
    .model_types = {"masque"},
    .classes = {},
    .heads = {},
    .loads = "any combination of the variants, as lm-train writes it",
    .plan = make_plan,
    .starts = unpadded_starts,
    .files =
        {.wide_configs =
             {R"("type_vocab_size": 2, "embedding_size": 64, "gated": true, "talking_heads": "both")",
              R"("layer_kind": "gated_attention", "streams": "two", "position": "none")",
              R"("norm_placement": "pre")", R"("norm_placement": "sandwich")",
              R"("norm_placement": "rezero")", R"("norm_placement": "admin")",
              R"("norm_placement": "normformer")",
              R"("norm_placement": "output", "query_key_norm": "width")",
              R"("latent": {"num_hidden_layers": 1})",
              R"("detector": {"hidden_size": 64, "num_attention_heads": 1}, "mask_token_id": 0)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
