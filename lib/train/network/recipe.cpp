#include "train/network/recipe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "base/types.hpp"
#include "model/checkpoint/save.hpp"
#include "model/family.hpp"
#include "model/layer_list.hpp"
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
struct DeepNormConstants {
  std::string_view name;
  double scale;
  double gain_layers, gain;
};

constexpr std::array<DeepNormConstants, 4> kDeepNorms{{{"deepnorm", 0.25, 8, -0.25},
                                                       {"deepnorm_su", 0.5, 2, -0.5},
                                                       {"deepnorm_su_sgd", 0.25, 2, -0.25},
                                                       {"deepnorm_su_lamb", 0, 2, -0.5}}};

/// Returns the constants of `norm_placement` for L = `layers`. "deepnorm": α = (2L)^(1/4), β =
/// (8L)^(−1/4), of encoders and decoders alone (Wang 2022, arXiv:2203.00555, table 1). Of Su 2022,
/// https://kexue.fm/archives/8978, by the optimizer: "deepnorm_su_sgd": α = (2L)^(1/4), β =
/// (2L)^(−1/4); "deepnorm_su", for Adam: α = (2L)^(1/2), β = (2L)^(−1/2); "deepnorm_su_lamb": α =
/// 1, β = (2L)^(−1/2). Any other placement: 1 and 0.
DeepNorm deepnorm(std::string_view norm_placement, Index layers) {
  const auto found = std::ranges::find(kDeepNorms, norm_placement, &DeepNormConstants::name);
  if (found == kDeepNorms.end()) return {};
  const auto count = static_cast<double>(layers);
  return {std::pow(2 * count, found->scale), std::pow(found->gain_layers * count, found->gain)};
}

/// Whether `norm_placement` is one of these.
bool is_deepnorm(std::string_view norm_placement) {
  return std::ranges::find(kDeepNorms, norm_placement, &DeepNormConstants::name) !=
         kDeepNorms.end();
}

// From a recipe to a design.

/// Calls work(); what it refuses is reported with the field.
void about(std::string_view name, const std::function<void()>& work) {
  if (const auto problem = usage_error_message(work))
    throw UsageError(fmt::format("{}: {}", field(name), *problem));
}

DeepNorm deepnorm_of(const DesignRecipe& recipe) {
  return deepnorm(recipe.norm_placement, recipe.num_hidden_layers);
}

/// `text`, a scheme or a list by layer, with each scheme in its one spelling.
std::string positions_text(const std::string& text, Index layers) {
  std::vector<std::string> choices = model::LayerList(text).of_layers(layers);
  for (std::string& one : choices) one = model::position_text(one);
  return model::LayerList::of(choices).text();
}

std::string normalizers_text(const std::string& text, Index layers) {
  return model::LayerList::of(model::LayerList(text).of_layers(layers)).text();
}

void set_position(const DesignRecipe& recipe, Design& design) {
  design.position = model::PositionType::kNone;
  design.variants.position = positions_text(recipe.position, design.num_hidden_layers);
  design.variants.position_shared = recipe.position_shared;
  design.attention_scale = model::position_scheme(design)->scale(model::position_shape(design));
  model::scale_listed_layers(design);
  model::take_own_position(design);
}

void set_normalizer(const std::string& text, Design& design) {
  about("normalizer",
        [&] { design.normalizer = normalizers_text(text, design.num_hidden_layers); });
}

/// DesignChanges::position.
void change_position(const DesignChanges& changes, Design& design) {
  about("position", [&] {
    // What a list set.
    if (design.variants.position.is_list()) {
      for (model::LayerDesign& layer : design.layers) layer.attention_scale = 1;
    }
    design.variants.position = {};
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
      return !usage_error_message([&] { model::saved_design(one); });
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

Index scaled(Index size, double by) {
  return size == 0
             ? 0
             : std::max<Index>(1, static_cast<Index>(std::llround(by * static_cast<double>(size))));
}

constexpr DesignField kDesignFields[] = {
    {"num_hidden_layers", &DesignRecipe::num_hidden_layers, "N", "number of layers", "", 1000},
    {"hidden_size", &DesignRecipe::hidden_size, "N", "hidden size", "", 100000},
    {"num_attention_heads", &DesignRecipe::num_attention_heads, "N", "number of attention heads",
     "", 10000, "", true},
    {"head_size", &DesignRecipe::head_size, "N", "size of a head's queries and keys",
     "hidden size / heads", 100000},
    {"value_size", &DesignRecipe::value_size, "N", "size of a head's values", "hidden size / heads",
     100000},
    {"intermediate_size", &DesignRecipe::intermediate_size, "N", "size of the feed-forward layer",
     "4 × hidden size; gated attention units: 2 ×", 1000000},
    {"attention_key_size", &DesignRecipe::attention_key_size, "N",
     "size of queries and keys in gated attention units", "", 100000},
    {"layer_kind", &DesignRecipe::layer_kind, "KIND",
     "kind of layers: transformer or gated_attention", "", 0, "", true},
    {"position", &DesignRecipe::position, "SCHEME",
     "positions: learned, sinusoidal, rope, none, or a scheme of attn-probe variants",
     "learned; plm: rope", 0, "", true, true},
    {"position_shared", &DesignRecipe::position_shared, "",
     "all layers share the parameters of the positions"},
    {"late_positions", &DesignRecipe::late_positions, "N",
     "add learned absolute positions also to the states in front of the last N layers", "", 1000},
    {"normalizer", &DesignRecipe::normalizer, "NAME",
     "function from scores to attention weights; attn-probe variants lists them", "", 0, "", true,
     true},
    {"norm_placement", &DesignRecipe::norm_placement, "WHERE",
     "where norms stand: post, pre, parallel, parallel_shared, output, sandwich, rezero, "
     "normformer, "
     "admin, deepnorm, or "
     "deepnorm with gains for an optimizer: deepnorm_su (Adam), deepnorm_su_sgd, deepnorm_su_lamb",
     "", 0, "", true},
    {"input_residual", &DesignRecipe::input_residual, "",
     "no residual connection around the first layer's attention", "", 0, "no_input_residual"},
    {"norm", &DesignRecipe::norm, "KIND", "kind of norms: layer or rms"},
    {"hidden_act", &DesignRecipe::hidden_act, "NAME", "activation of the feed-forward layer",
     "gelu; gated: silu"},
    {"gated", &DesignRecipe::gated, "", "use gated feed-forward layers"},
    {"mixer", &DesignRecipe::mixer, "NAME",
     "block instead of attention; attn-probe variants lists them", "", 0, "", true},
    {"mixer_inner_size", &DesignRecipe::mixer_inner_size, "N",
     "hidden units, rank or memories of a mixer", "see attn-probe variants", 1000000},
    {"mixer_attention_size", &DesignRecipe::mixer_attention_size, "N",
     "size of amlp's tiny attention, and of mixed_chunk's queries and keys", "", 100000},
    {"mixer_kernel_size", &DesignRecipe::mixer_kernel_size, "N",
     "kernel size of a mixer's convolution", "", 100000},
    {"mixer_dilation", &DesignRecipe::mixer_dilation, "N",
     "distance between the taps of that convolution", "", 100000},
    {"mixer_chunk_size", &DesignRecipe::mixer_chunk_size, "N", "tokens in a chunk of mixed_chunk",
     "", 100000},
    {"talking_heads", &DesignRecipe::talking_heads, "WHERE",
     "mix heads before the softmax, after it, or both: none, before, after or both", "", 0, "",
     true},
    {"softmax_heads", &DesignRecipe::softmax_heads, "N",
     "number of heads in the softmax, between the two mixings of talking heads",
     "the number of heads", 10000},
    {"value_heads", &DesignRecipe::value_heads, "N",
     "number of heads of values, after a mixing of weights by talking heads", "the number of heads",
     10000},
    {"largest_keys", &DesignRecipe::largest_keys, "K",
     "each query reads only the keys with its K largest scores", "all", 1000000},
    {"previous_scores", &DesignRecipe::previous_scores, "KIND",
     "add scores of earlier layers (RealFormer): none, one_layer or accumulated", "", 0, "", true},
    {"head_shifted", &DesignRecipe::head_shifted, "",
     "predict each hidden token from the position before it, as Dream does"},
    {"tie_word_embeddings", &DesignRecipe::tie_word_embeddings, "",
     "give the output its own vocabulary matrix", "", 0, "untied"},
};

/// The members of config.json that `recipe` has other words for, or that do not fit its layers.
void settle(DesignRecipe& recipe) {
  const bool gated_units = recipe.layer_kind == "gated_attention";
  if (gated_units) {
    recipe.num_attention_heads = 1;
    recipe.head_size = recipe.value_size = 0;
    if (recipe.intermediate_size == 0) recipe.intermediate_size = 2 * recipe.hidden_size;
  } else {
    const Index heads = recipe.num_attention_heads;
    const bool own_sizes = recipe.head_size > 0 && recipe.value_size > 0;
    if (recipe.hidden_size % heads != 0 && !own_sizes) {
      throw UsageError(fmt::format("{} {} is not a multiple of {} {}", field("hidden_size"),
                                   recipe.hidden_size, field("num_attention_heads"), heads));
    }
    if (recipe.value_size == 0) recipe.value_size = recipe.hidden_size / heads;
  }
  const Index layers = recipe.num_hidden_layers;
  about("position", [&] { recipe.position = positions_text(recipe.position, layers); });
  about("normalizer", [&] { recipe.normalizer = normalizers_text(recipe.normalizer, layers); });
  if (is_deepnorm(recipe.norm_placement)) recipe.norm_placement = "post";
}

/// What options and messages call `one`.
std::string_view name_of(const DesignField& one) {
  return one.option.empty() ? one.key : one.option;
}

/// The option for the member `key`, as messages call it.
std::string called(std::string_view key) {
  const auto* found = std::ranges::find(kDesignFields, key, &DesignField::key);
  return field(found == std::end(kDesignFields) ? key : name_of(*found));
}

/// The config.json of the family `masque` for `recipe`.
std::string config_text(DesignRecipe recipe) {
  const double residual_scale = deepnorm_of(recipe).residual_scale;
  settle(recipe);
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.key("model_type").value("masque");
  json.key("vocab_size").value(recipe.vocab_size);
  json.key("max_position_embeddings").value(recipe.max_position_embeddings);
  json.key("residual_scale").value(residual_scale);
  for (const DesignField& one : kDesignFields) {
    std::visit(
        [&](auto member) {
          const auto& value = recipe.*member;
          using Value = std::remove_cvref_t<decltype(value)>;
          // What a recipe leaves open has the default of the family.
          if constexpr (!std::is_same_v<Value, bool>) {
            if (value == Value()) return;
          }
          json.key(one.key).value(value);
        },
        one.member);
  }
  json.end_object();
  return text;
}

}  // namespace

std::span<const DesignField> design_fields() { return kDesignFields; }

std::string option_of(const DesignField& field) {
  std::string name(name_of(field));
  std::ranges::replace(name, '_', '-');
  return name;
}

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
                                 field("normalizer"), escape(design.normalizer.text()), start));
  }
  if (changes.position) change_position(changes, design);
  about("normalizer", [&] { model::check_score_scale(design); });
}

Design design_of(const DesignRecipe& recipe) {
  const auto family = model::find_family("masque");
  Design design = family
                      ->plan(model::FamilyConfig::of_options(
                          store::ModelConfig::parse(config_text(recipe), ""), called))
                      .design;
  about("position", [&] { model::take_own_position(design); });
  design.head.transform = recipe.head_transform;
  if (recipe.head_transform) {
    design.head.norm = design.norm;
    design.head.activation = design.activation;
  }
  design.head.tied = recipe.tie_word_embeddings;
  design.head.shifted = recipe.head_shifted;
  return design;
}

}  // namespace masque::train
