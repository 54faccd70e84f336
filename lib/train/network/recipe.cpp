#include "train/network/recipe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"
#include "model/checkpoint/save.hpp"
#include "model/layer_list.hpp"
#include "model/masque_names.hpp"
#include "model/variants.hpp"

namespace masque::train {

using model::Design;

namespace {

// DeepNorm: the scale of the residual and the gain of initial weights that let deep post-norm
// models train. x ← norm(α x + f(x)); weights of values, output and feed-forward layers, and
// the whole input projection of a gated unit, start β times as large; queries and keys keep gain 1.

/// α and β. A gain of 0: the default initialization.
struct DeepNorm {
  double residual_scale = 1;  ///< α
  double gain = 0;            ///< β
};

/// α = (2L)^scale, β = (gain_layers · L)^gain.
struct Constants {
  std::string_view name;
  double scale;
  double gain_layers, gain;
};

constexpr std::array<Constants, 4> kConstants{{{"deepnorm", 0.25, 8, -0.25},
                                               {"deepnorm_su", 0.5, 2, -0.5},
                                               {"deepnorm_su_sgd", 0.25, 2, -0.25},
                                               {"deepnorm_su_lamb", 0, 2, -0.5}}};

/// Returns the constants of `norm_placement` for L = `layers`. "deepnorm": α = (2L)^(1/4), β =
/// (8L)^(−1/4), of encoders and decoders alone (Wang 2022, arXiv:2203.00555, table 1). Of Su 2022,
/// https://kexue.fm/archives/8978, by the optimizer: "deepnorm_su_sgd": α = (2L)^(1/4), β =
/// (2L)^(−1/4); "deepnorm_su", for Adam: α = (2L)^(1/2), β = (2L)^(−1/2); "deepnorm_su_lamb": α =
/// 1, β = (2L)^(−1/2). Any other placement: 1 and 0.
DeepNorm deepnorm(std::string_view norm_placement, Index layers) {
  const auto found = std::ranges::find(kConstants, norm_placement, &Constants::name);
  if (found == kConstants.end()) return {};
  const auto count = static_cast<double>(layers);
  return {std::pow(2 * count, found->scale), std::pow(found->gain_layers * count, found->gain)};
}

/// Whether `norm_placement` is one of these.
bool is_deepnorm(std::string_view norm_placement) {
  return std::ranges::find(kConstants, norm_placement, &Constants::name) != kConstants.end();
}

[[noreturn]] void refuse(std::string_view name, const std::string& found,
                         std::string_view expected) {
  throw UsageError(
      fmt::format("{}: found '{}', expected {}", field(name), escape(found), expected));
}

/// The value of a name. Throws UsageError with the field for another one.
template <class T>
T choice(std::string_view what, const std::string& name, std::string_view expected,
         std::initializer_list<std::pair<std::string_view, T>> values) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  refuse(what, name, expected);
}

/// Calls work(); what it refuses is reported with the field.
void about(std::string_view name, const std::function<void()>& work) {
  if (const auto problem = usage_error_message(work))
    throw UsageError(fmt::format("{}: {}", field(name), *problem));
}

DeepNorm deepnorm_of(const DesignRecipe& recipe) {
  return deepnorm(recipe.norm_placement, recipe.num_hidden_layers);
}

void set_position(const DesignRecipe& recipe, Design& design) {
  design.position = model::PositionType::kNone;
  std::vector<std::string> choices =
      model::layer_choices(recipe.position, design.num_hidden_layers);
  for (std::string& one : choices) one = model::position_text(one);
  design.variants.position = model::layer_list_text(choices);
  design.variants.position_shared = recipe.position_shared;
  design.attention_scale = model::position_scheme(design)->scale(model::position_shape(design));
  model::scale_listed_layers(design);
  model::take_own_position(design);
}

void set_normalizer(const std::string& text, Design& design) {
  about("normalizer", [&] {
    model::layer_normalizers(text, design.num_hidden_layers);
    design.normalizer =
        model::layer_list_text(model::layer_choices(text, design.num_hidden_layers));
  });
}

void set_norms(const DesignRecipe& recipe, Design& design) {
  using model::NormPlacement;
  if (recipe.norm != "layer" && recipe.norm != "rms") refuse("norm", recipe.norm, "layer or rms");
  design.norm.kind = recipe.norm == "rms" ? kernel::Norm::kRms : kernel::Norm::kLayer;
  design.norm.epsilon = 1e-12;
  const std::string& placement = recipe.norm_placement;
  if (is_deepnorm(placement)) {
    design.norm_placement = NormPlacement::kPost;
    design.variants.residual_scale = deepnorm_of(recipe).residual_scale;
  } else if (const auto found = model::find_word(model::kNormPlacements, placement)) {
    design.norm_placement = *found;
  } else {
    refuse("norm_placement", placement,
           "post, pre, parallel, sandwich, rezero, normformer, admin, deepnorm, deepnorm_su, "
           "deepnorm_su_sgd or deepnorm_su_lamb");
  }
  if (norms_input(design.norm_placement)) {
    design.final_norm = true;
  } else {
    // ReZero: without it the states would be as small as embeddings start.
    design.embedding_norm = design.norm;
  }
}

/// Refuses parts that no layer has together, by the names of both.
void check_parts(const DesignRecipe& recipe, const Design& design) {
  if (const auto problem = model::input_residual_problem(design))
    throw UsageError(fmt::format("{}: {}", field("no_input_residual"), *problem));
  if (const auto problem = model::late_position_problem(design))
    throw UsageError(fmt::format("{}: {}", field("late_positions"), *problem));
  const auto apart = [](const std::string& one, const std::string& other, std::string_view why) {
    throw UsageError(fmt::format("{} with {}: {}", one, other, why));
  };
  const auto named = [](std::string_view name, const std::string& value) {
    return fmt::format("{} {}", field(name), value);
  };
  const std::string talks = named("talking_heads", recipe.talking_heads);
  if (design.layer_kind == model::LayerKind::kGatedAttention) {
    const std::string kind = named("layer_kind", recipe.layer_kind);
    if (recipe.gated)
      apart(field("gated"), kind, "its units are gated already; remove one of the options");
    if (design.norm_placement != model::NormPlacement::kPost &&
        design.norm_placement != model::NormPlacement::kPre)
      apart(named("norm_placement", recipe.norm_placement), kind,
            "a unit is a single block; use post or pre");
    if (recipe.talking_heads != "none") apart(talks, kind, "a unit has one head; use none");
    if (!recipe.mixer.empty())
      apart(named("mixer", recipe.mixer), kind,
            "a unit contains attention; remove one of the options");
  }
  if (recipe.mixer.empty()) return;
  const std::string mixer = named("mixer", recipe.mixer);
  const nn::Mixer* own = nullptr;
  about("mixer", [&] { own = model::mixer_of(design); });
  // Of the sizes of mixers only this one may not fit the mixer.
  const nn::MixerShape shape{
      .tokens = 1, .hidden_size = recipe.hidden_size, .inner_size = recipe.mixer_inner_size};
  if (const auto problem = usage_error_message([&] { own->parameters(shape); }))
    apart(fmt::format("{} {}", field("mixer_inner_size"), recipe.mixer_inner_size), mixer,
          *problem);
  if (recipe.talking_heads != "none")
    apart(talks, mixer, "a mixer has no attention weights; use none");
  if (recipe.largest_keys > 0)
    apart(fmt::format("{} {}", field("largest_keys"), recipe.largest_keys), mixer,
          "a mixer has no scores; remove one of the options");
  if (recipe.previous_scores != "none")
    apart(named("previous_scores", recipe.previous_scores), mixer,
          "a mixer has no scores; use none");
  if (model::positions_act_in_attention(design))
    apart(named("position", recipe.position), mixer,
          "a mixer has no queries and keys; use learned, sinusoidal, none or another scheme of the "
          "input");
}

/// DesignChanges::position.
void change_position(const DesignChanges& changes, Design& design) {
  about("position", [&] {
    // What a list set.
    if (model::is_layer_list(design.variants.position)) {
      for (model::LayerDesign& layer : design.layers) layer.attention_scale = 1;
    }
    design.variants.position.clear();
    // Also after schemes and families that scale otherwise.
    design.attention_scale =
        1 / std::sqrt(static_cast<double>(model::position_shape(design).head_size));
    DesignRecipe recipe;
    recipe.position = model::position_text(*changes.position);
    recipe.position_shared = changes.position_shared;
    Design named = design;
    named.position = model::PositionType::kNone;
    named.variants.position = recipe.position;
    named.variants.position_shared = changes.position_shared;
    Design native = design;
    set_position(recipe, native);
    const auto has_family = [](const Design& one) {
      return !usage_error_message([&] { model::plan_of(one); });
    };
    // A bare name asks for masque's own positions. With arguments they may not change who
    // writes the model, and so which parameters it has.
    const bool bare = recipe.position.find('(') == std::string::npos;
    const bool takes_native =
        !native.variants.position.empty() || (has_family(native) && (bare || has_family(named)));
    design = takes_native ? std::move(native) : std::move(named);
    if (model::has_position_table(design) && design.max_position_embeddings == 0)
      throw UsageError("has parameters by position, but the model has no maximum length");
  });
}

/// Where heads are mixed, and how many the mixings give.
void set_talking_heads(const DesignRecipe& recipe, Design& design) {
  using model::TalkingHeads;
  const TalkingHeads talking =
      choice<TalkingHeads>("talking_heads", recipe.talking_heads, "none, before, after or both",
                           {{"none", TalkingHeads::kNone},
                            {"before", TalkingHeads::kBefore},
                            {"after", TalkingHeads::kAfter},
                            {"both", TalkingHeads::kBoth}});
  const auto own = [&](std::string_view name, Index heads, bool mixed, std::string_view where) {
    if (heads > 0 && !mixed)
      throw UsageError(fmt::format("{} {} with {} {}: these heads are not mixed; use {}",
                                   field(name), heads, field("talking_heads"), recipe.talking_heads,
                                   where));
    return heads == design.num_attention_heads ? Index{0} : heads;
  };
  model::VariantDesign& variants = design.variants;
  variants.talking_heads = talking;
  variants.softmax_heads =
      own("softmax_heads", recipe.softmax_heads, talking == TalkingHeads::kBoth, "both");
  variants.value_heads =
      own("value_heads", recipe.value_heads, mixes_weights(talking), "after or both");
}

void set_mixer(const DesignRecipe& recipe, model::VariantDesign& variants) {
  variants.mixer = recipe.mixer;
  variants.mixer_inner_size = recipe.mixer_inner_size;
  variants.mixer_attention_size = recipe.mixer_attention_size;
  variants.mixer_kernel_size = recipe.mixer_kernel_size;
  variants.mixer_dilation = recipe.mixer_dilation;
  variants.mixer_chunk_size = recipe.mixer_chunk_size;
}

Index scaled(Index size, double by) {
  return size == 0
             ? 0
             : std::max<Index>(1, static_cast<Index>(std::llround(by * static_cast<double>(size))));
}

}  // namespace

DesignRecipe scaled_recipe(const DesignRecipe& recipe, double size) {
  DesignRecipe own = recipe;
  own.hidden_size = scaled(recipe.hidden_size, size);
  own.intermediate_size = scaled(recipe.intermediate_size, size);
  own.attention_key_size = scaled(recipe.attention_key_size, size);
  own.mixer_inner_size = scaled(recipe.mixer_inner_size, size);
  const Index wide = std::max<Index>(1, recipe.hidden_size / recipe.num_attention_heads);
  own.num_attention_heads = std::max<Index>(1, own.hidden_size / wide);
  while (own.hidden_size % own.num_attention_heads != 0) --own.num_attention_heads;
  return own;
}

double residual_gain(const DesignRecipe& recipe) { return deepnorm_of(recipe).gain; }

void change_design(const DesignChanges& changes, Design& design) {
  const bool learns = model::learns_score_scale(design);
  const double start = model::start_of_score_scale(design);
  if (changes.normalizer) set_normalizer(*changes.normalizer, design);
  if (learns && model::learns_score_scale(design) && model::start_of_score_scale(design) != start) {
    throw UsageError(fmt::format("{}: '{}': the heads of the model have learned s; use s={}",
                                 field("normalizer"), escape(design.normalizer), start));
  }
  if (changes.position) change_position(changes, design);
  about("normalizer", [&] { model::check_score_scale(design); });
}

Design design_of(const DesignRecipe& recipe) {
  using model::LayerKind;
  using model::PreviousScores;
  Design design;
  design.family = design.model_type = "masque";
  design.vocab_size = recipe.vocab_size;
  design.hidden_size = design.embedding_size = recipe.hidden_size;
  design.num_hidden_layers = recipe.num_hidden_layers;
  design.max_position_embeddings = recipe.max_position_embeddings;
  const bool gated_units = recipe.layer_kind == "gated_attention";
  if (!gated_units && recipe.layer_kind != "transformer")
    refuse("layer_kind", recipe.layer_kind, "transformer or gated_attention");
  const Index heads = gated_units ? 1 : recipe.num_attention_heads;
  design.num_attention_heads = design.num_key_value_heads = heads;
  if (gated_units) {
    design.layer_kind = LayerKind::kGatedAttention;
    design.attention_key_size = design.head_size = recipe.attention_key_size;
  } else {
    const bool own_sizes = recipe.head_size > 0 && recipe.value_size > 0;
    if (recipe.hidden_size % heads != 0 && !own_sizes) {
      throw UsageError(fmt::format("{} {} is not a multiple of {} {}", field("hidden_size"),
                                   recipe.hidden_size, field("num_attention_heads"), heads));
    }
    const Index even = recipe.hidden_size / heads;
    design.head_size = recipe.head_size > 0 ? recipe.head_size : even;
    const Index value_size = recipe.value_size > 0 ? recipe.value_size : even;
    if (design.head_size != value_size) design.value_size = value_size;
  }
  design.intermediate_size = recipe.intermediate_size > 0
                                 ? recipe.intermediate_size
                                 : recipe.hidden_size * (gated_units ? 2 : 4);
  design.attention_scale = 1 / std::sqrt(static_cast<double>(design.head_size));
  for (Index l = 0; l < recipe.num_hidden_layers; ++l) {
    model::LayerDesign layer;
    layer.weights = l;
    design.layers.push_back(layer);
  }
  const std::string act = !recipe.hidden_act.empty() ? recipe.hidden_act
                          : gated_units              ? "silu"
                                                     : "gelu";
  const auto activation = kernel::find_activation(act);
  if (!activation) refuse("hidden_act", act, "gelu, gelu_tanh, relu, squared_relu, silu, …");
  design.activation = *activation;
  design.gated = recipe.gated;
  set_normalizer(recipe.normalizer, design);
  set_norms(recipe, design);
  design.variants.input_residual = recipe.input_residual;
  design.variants.late_positions = recipe.late_positions;
  set_mixer(recipe, design.variants);
  set_talking_heads(recipe, design);
  design.variants.largest_keys = recipe.largest_keys;
  design.variants.previous_scores = choice<PreviousScores>(
      "previous_scores", recipe.previous_scores, "none, one_layer or accumulated",
      {{"none", PreviousScores::kNone},
       {"one_layer", PreviousScores::kOneLayer},
       {"accumulated", PreviousScores::kAccumulated}});
  about("position", [&] { set_position(recipe, design); });
  about("normalizer", [&] { model::check_score_scale(design); });
  check_parts(recipe, design);
  design.head.transform = recipe.head_transform;
  if (recipe.head_transform) {
    design.head.norm = design.norm;
    design.head.activation = design.activation;
  }
  design.head.tied = recipe.tie_word_embeddings;
  return design;
}

}  // namespace masque::train
