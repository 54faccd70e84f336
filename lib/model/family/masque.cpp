// The family of our own: any combination of what masque has, for designs that have no family of
// their own. Keys and tensor names: lib/model/README.md.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
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
  design.norm_weights = config.flag("norm_weights", true);
  const bool input = norms_input(design.norm_placement);
  if (config.flag("embedding_norm", !input)) design.embedding_norm = design.norm;
  design.final_norm = config.flag("final_norm", input);
  design.variants.residual_scale = config.positive("residual_scale", 1);
  if (!post && design.variants.residual_scale != 1) {
    config.refuse("residual_scale", "1: only norm_placement post supports other values");
  }
  design.variants.input_residual = config.flag("input_residual", true);
}

void read_own_position(Design& design, const FamilyConfig& config) {
  design.position =
      read_word(config, "position_embedding_type", kPositionTypes, PositionType::kLearned);
  if (design.position == PositionType::kLearned && design.max_position_embeddings == 0) {
    config.refuse("max_position_embeddings", "at least 1: positions are learned");
  }
  if (design.position == PositionType::kSinusoidal) {
    design.sinusoidal_interleaved = config.flag("sinusoidal_interleaved", false);
  }
}

void read_position(Design& design, const FamilyConfig& config) {
  const bool alibi =
      !config.has("position") && config.text("position_embedding_type", "") == "alibi";
  const std::string position = alibi ? "alibi" : config.text("position", "");
  LayerDesign layer;
  layer.window = config.optional_count("window");
  if (position.empty()) {
    read_own_position(design, config);
    if (design.position == PositionType::kRotary) {
      check_rotary_size(config, "head_size", design.head_size);
      const bool adjacent = config.flag("rotary_interleaved", true);
      layer.rotary =
          plain_rotary(adjacent ? kernel::RotaryLayout::kAdjacent : kernel::RotaryLayout::kHalf,
                       config.positive("rope_theta", 10000), design.head_size);
    }
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
  fill_layers(design, layer);
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
  if (design.layer_kind == LayerKind::kGatedAttention) {
    config.refuse("mixer", "none: gated attention cannot have a mixer");
  }
  if (needs_materialized_attention(design)) {
    config.refuse("mixer",
                  fmt::format("none with {}, {}, {} and position schemes of weights and values",
                              config.called("talking_heads"), config.called("largest_keys"),
                              config.called("previous_scores")));
  }
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
              R"("norm_placement": "normformer")", R"("latent": {"num_hidden_layers": 1})",
              R"("detector": {"hidden_size": 64, "num_attention_heads": 1}, "mask_token_id": 0)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
