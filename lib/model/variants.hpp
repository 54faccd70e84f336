// What a design's variants (VariantDesign) are in the registries of nn, with their sizes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/normalizer.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::model {

/// The scheme of `design`, of a list the one that stands there besides `none`; nullptr without one.
inline const nn::PositionScheme* position_scheme(const Design& design) {
  return design.variants.position.scheme().get();
}
/// Returns for each layer of `design` whether the scheme acts in it: in all but those for which a
/// list says `none`. Throws UsageError for a list of another length.
std::vector<bool> layers_with_position(const Design& design);

/// With a list of positions, gives the layers of `design` without one scores scaled by 1/√(head
/// size), whatever the scheme's scale is, in LayerDesign::attention_scale. Throws UsageError for a
/// list of another length, for a scheme that makes the whole score, and for a model whose layers
/// have scales of their own.
void scale_listed_layers(Design& design);

/// The normalizer of each layer of `design`. Throws UsageError for a list of another length.
inline std::vector<std::shared_ptr<const nn::AttentionNormalizer>> layer_normalizers(
    const Design& design) {
  return design.normalizer.normalizers(design.num_hidden_layers);
}

/// Returns for each layer of `design` whether its normalizer has a scale that its heads learn; no
/// mixer has one.
std::vector<bool> layers_with_score_scale(const Design& design);
/// Whether any layer of `design` has such a scale.
bool learns_score_scale(const Design& design);
/// The value at which these scales of `design` start; 0 if it has none.
double start_of_score_scale(const Design& design);
/// Throws UsageError if scales that heads of `design` learn cannot multiply queries: next to other
/// terms of scores, heads that are mixed, largest keys, scores of the layer before, or with several
/// starts.
void check_score_scale(const Design& design);

/// The sizes of `design` that its scheme serves. One that acts on the input sees embedding_size
/// columns.
nn::PositionShape position_shape(const Design& design);
/// The parameters that the scheme of `design` trains; none without a scheme.
std::vector<nn::PositionParameter> position_parameters(const Design& design);
/// Whether the positions of `design` have parameters for each position, as many as the longest
/// sequence has.
bool has_position_table(const Design& design);
/// Whether the parameters of the scheme of `design` are ModelWeights::position, one set, not
/// LayerWeights::position.
bool shares_position(const Design& design);

/// What a PositionType is called.
struct OwnPosition {
  PositionType type = PositionType::kNone;  ///< what is called so
  /// Scheme of nn that it implements; empty: none has its parameters' shape.
  std::string_view scheme;
  std::string_view spoken;  ///< in messages, before "positions"
  bool input = false;       ///< it is added to the input, which a query stream does not see
};
/// One for each PositionType: which schemes of nn masque has terms of its own for. They live as
/// long as the program.
std::span<const OwnPosition> own_positions();
/// The one that implements the scheme of nn with the name `scheme`; nullptr if there is none.
const OwnPosition* own_position(std::string_view scheme);
/// The one of `type`.
const OwnPosition& own_position(PositionType type);

/// Whether positions of `design`, masque's own or a scheme's, are added to the input.
bool adds_position(const Design& design);

/// Whether positions of `design` are rotary, or a scheme's other than `none` that does not act on
/// the input: they act on queries, keys, scores or values, which a mixer does not have.
bool positions_act_in_attention(const Design& design);

/// The scheme `text` in one spelling: without parentheses where there are no arguments. Lists stay.
std::string position_text(std::string_view text);

/// Puts masque's own terms into `design` instead of its scheme: of one without arguments, and of
/// `rope` with arguments where config.json can say its base. Leaves others as they are. What is
/// `sinusoidal` to masque has sines in the first half (sinusoidal_interleaved says otherwise).
/// Throws UsageError for angles of an odd head size.
void take_own_position(Design& design);

/// The angles of the scheme of `design`, if it only rotates queries and keys by their positions:
/// `rope`, `rope_yarn` and the like. Nothing for other schemes, for lists, or none.
std::optional<RotaryDesign> rotary_of(const Design& design);
/// Gives `design` PositionType::kRotary with the angles `rotary`, in all of its `layers`, instead
/// of its scheme.
void set_rotary(const RotaryDesign& rotary, Design& design);

/// What the mixer of `design`, which has one, is called.
std::string_view mixer_name(const Design& design);
/// The mixer called `name`. Throws UsageError for an unknown one.
const nn::Mixer* mixer_named(std::string_view name);
/// The sizes of `design` for its mixer, of which max_position_embeddings are the tokens.
nn::MixerShape mixer_shape(const Design& design);
/// Why the mixer of `design` cannot stand in its streams; nothing if it can, and without one. Of
/// T-TA it mixes the embeddings, with weights that do not depend on the row's own token.
std::optional<std::string> mixer_problem(const Design& design);
/// The parameters of the mixer of `design`; none without a mixer. Throws UsageError for an unknown
/// one, or sizes that do not fit it.
std::vector<nn::MixerParameter> mixer_parameters(const Design& design);

/// Whether the weights of all heads of a layer of `design` exist at once, also while training: with
/// talking heads, largest keys, scores of the layer before.
bool joins_heads(const Design& design);

/// Whether attention of `design` needs nn::materialized_attention_forward: talking heads, scores of
/// the layer before, largest keys, factors of weights, terms of values.
bool needs_materialized_attention(const Design& design);

/// Which masks a design obeys, and by what it is bound.
struct DesignMasks {
  nn::MaskSupport masks = nn::MaskSupport::kAny;  ///< the masks that it obeys
  std::string part;  ///< "position convolutional(width=3)"; empty: nothing binds it
};
/// Returns the part of `design` that obeys the fewest masks: the position scheme, the mixer or the
/// convolution.
DesignMasks mask_support(const Design& design);

/// Heads of `design` whose scores are normalized: those between the two mixings of talking heads.
Index softmax_heads(const Design& design);
/// Heads of values of `design`, those of the context: what Λ after the normalizer gives. As many
/// weights are shown of a layer (Observer::attention).
Index value_heads(const Design& design);
/// Heads in the columns of the value projection of `design`: heads of values may share them as they
/// share keys.
Index projected_value_heads(const Design& design);

/// α of the residual that attention (or mixer, or gated unit) of layer `layer` of `design` is added
/// to: 0 without VariantDesign::input_residual in the first layer.
double residual_scale(const Design& design, Index layer);
/// Why `design` cannot be without the residual of its input; nothing if it can, and with it.
std::optional<std::string> input_residual_problem(const Design& design);

/// The layer of `design` in front of which VariantDesign::late_positions join; −1: nowhere.
Index late_position_layer(const Design& design);
/// Why `design` cannot have its late positions; nothing if it can.
std::optional<std::string> late_position_problem(const Design& design);

/// Columns of what attention, mixer or gated unit of `design` gives to the output projection.
Index context_width(const Design& design);

/// The first layer of `design` with a latent bottleneck in front of it; num_hidden_layers if there
/// is none.
Index first_latent_layer(const Design& design);

/// Throws UsageError if `design` has bottlenecks that it cannot have: with several streams, a
/// mixer, a detector, late positions or previous scores, with layers that share weights, without as
/// many layers, or with a `size` below 2 or a `kappa` that is not in (0, 1e6].
void check_latent(const Design& design);

/// Whether what each head of `design` gives is multiplied by a number of its own
/// (NormPlacement::kNormFormer, without a mixer).
bool scales_heads(const Design& design);

}  // namespace masque::model
