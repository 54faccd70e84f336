// A model's design from the few words that people choose it by.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "model/design.hpp"

namespace masque::train {

/// Names as in config.json and in nn's registries. The scheme `rope`, with arguments too, becomes
/// masque's own rotation (PositionType::kRotary) where config.json can say its base.
struct DesignRecipe {
  Index vocab_size = 0;           ///< tokens
  Index num_hidden_layers = 4;    ///< L
  Index hidden_size = 256;        ///< d: numbers of a state
  Index num_attention_heads = 4;  ///< h; gated attention units have one
  /// Size of a head of queries and keys; 0: hidden size / heads.
  Index head_size = 0;
  Index value_size = 0;                    ///< size of a head of values; 0: hidden size / heads
  Index intermediate_size = 0;             ///< 0: four times the hidden size, twice of gated units
  Index attention_key_size = 128;          ///< size of queries and keys of gated attention units
  Index max_position_embeddings = 0;       ///< tokens of the longest sequence
  std::string layer_kind = "transformer";  ///< or "gated_attention"
  std::string position = "learned";        ///< "learned", "sinusoidal", "rope", "none", or a scheme
  bool position_shared = false;            ///< VariantDesign::position_shared
  std::string normalizer = "softmax";      ///< as nn::parse_normalizer takes it, or a list by layer
  /// As in config.json, or a DeepNorm: "deepnorm", "deepnorm_su", "deepnorm_su_sgd",
  /// "deepnorm_su_lamb".
  std::string norm_placement = "post";
  bool input_residual = true;            ///< as in config.json
  Index late_positions = 0;              ///< as in config.json
  std::string norm = "layer";            ///< "layer", "rms"
  std::string hidden_act;                ///< empty: gelu; silu of gated units
  bool gated = false;                    ///< the feed-forward layer
  std::string mixer;                     ///< a name of nn/mixer/mixer.hpp; empty: attention
  Index mixer_inner_size = 0;            ///< this and what follows: fields of nn::MixerShape
  Index mixer_attention_size = 64;       ///< MixerShape::attention_size
  Index mixer_kernel_size = 7;           ///< MixerShape::kernel_size
  Index mixer_dilation = 1;              ///< MixerShape::dilation
  Index mixer_chunk_size = 256;          ///< MixerShape::chunk_size
  std::string talking_heads = "none";    ///< "before", "after", "both"
  Index softmax_heads = 0;               ///< between the two mixings; 0: num_attention_heads
  Index value_heads = 0;                 ///< after a mixing of weights; 0: num_attention_heads
  Index largest_keys = 0;                ///< 0: all
  std::string previous_scores = "none";  ///< "one_layer", "accumulated"
  bool head_shifted = false;             ///< HeadDesign::shifted
  bool head_transform = true;            ///< a dense layer in front of the vocabulary
  bool tie_word_embeddings = true;       ///< the output matrix is the input table
};

/// A field of DesignRecipe: a member of the configuration of the family `masque`, a setting of a
/// run and an option of the tools, which all have this one description.
struct DesignField {
  /// The member: a flag is an option that gives it the other value than it has at first.
  using Member =
      std::variant<Index DesignRecipe::*, bool DesignRecipe::*, std::string DesignRecipe::*>;
  std::string_view key;      ///< as config.json and settings spell it
  Member member;             ///< where it is
  std::string_view value;    ///< what the option's help calls its value; empty: a flag
  std::string_view help;     ///< the option's help text
  std::string_view initial;  ///< what counts without the option, where the help has to say it
  Index most = 0;            ///< largest value of a number, which is at least 1
  std::string_view option;   ///< the option's name in the key's spelling, where that is another
  bool varies = false;       ///< a comparison of designs may list several
  bool by_layer = false;     ///< may be a list by layer
};

/// All of them, in the order of the help: every field of DesignRecipe but those that follow from a
/// corpus (vocab_size, max_position_embeddings) and head_transform.
std::span<const DesignField> design_fields();

/// The long name, without dashes, of the option of `field`.
std::string option_of(const DesignField& field);

/// What becomes another in the design of a starting model; nothing: stays.
struct DesignChanges {
  std::optional<std::string> position;    ///< as DesignRecipe::position
  bool position_shared = false;           ///< layers share the new positions
  std::optional<std::string> normalizer;  ///< as DesignRecipe::normalizer
};

/// Makes the `changes` in `design`. Parameters of the old positions are no part of it. Where no
/// family has "learned", "sinusoidal", "rope" or "none" with the rest of the design, the scheme of
/// that name; also for `rope` with arguments where only that leaves the tensors their names. Throws
/// UsageError for unknown names, and for tables of positions in a model without a longest
/// sequence.
void change_design(const DesignChanges& changes, model::Design& design);

/// Returns `recipe` with widths of `size` (more than 0) times its own, at least 1, and heads of the
/// same size where that is possible.
DesignRecipe scaled_recipe(const DesignRecipe& recipe, double size);

/// Returns how the parameters of the norm placement of `recipe` start: the gain of DeepNorm;
/// 0: the default initialization.
double residual_gain(const DesignRecipe& recipe);

/// Returns the design of `recipe`, with head, mask and streams left for the objective
/// (Objective::adapt). Throws UsageError for unknown words and sizes that do not fit.
model::Design design_of(const DesignRecipe& recipe);

}  // namespace masque::train
