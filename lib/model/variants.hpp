// What a design's variants (VariantDesign) are in the registries of nn, with their sizes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "nn/mixer.hpp"
#include "nn/normalizer.hpp"
#include "nn/position_scheme.hpp"

namespace masque::model {

/// The scheme of `variants.position`; nullptr if that is empty. Of a list (layer_list.hpp) the one
/// that stands there besides `none`. Throws UsageError for an unknown one, and for lists of
/// several.
std::shared_ptr<const nn::PositionScheme> position_scheme(const Design& design);
/// Of each layer, whether the scheme acts in it: in all but those for which a list says `none`.
std::vector<bool> layers_with_position(const Design& design);

/// With a list of positions, gives the layers without one scores scaled by 1/√(head size), whatever
/// the scheme's scale is, in LayerDesign::attention_scale. Throws UsageError for a model whose
/// layers have scales of their own.
void scale_listed_layers(Design& design);

/// The normalizer of each layer, of one for all or a list. Throws UsageError for unknown ones and
/// for a list of another length.
std::vector<std::shared_ptr<const nn::AttentionNormalizer>> layer_normalizers(std::string_view text,
                                                                              Index layers);

/// Of each layer, whether its normalizer has a scale that its heads learn.
std::vector<bool> layers_with_score_scale(const Design& design);
/// Whether any has.
bool learns_score_scale(const Design& design);
/// Where these start; 0 without one.
double start_of_score_scale(const Design& design);
/// Throws UsageError if scales that heads learn cannot multiply queries: next to other terms of
/// scores, heads that are mixed, scores of the layer before, or with several starts.
void check_score_scale(const Design& design);

/// The sizes that the scheme serves. One that acts on the input sees embedding_size columns.
nn::PositionShape position_shape(const Design& design);
/// What it trains, or nothing.
std::vector<nn::PositionParameter> position_parameters(const Design& design);
/// Whether it has parameters for each position, as many as the longest sequence has.
bool has_position_table(const Design& design);
/// Whether these are ModelWeights::position, one set, not LayerWeights::position.
bool shares_position(const Design& design);

/// What a PositionType is called.
struct OwnPosition {
  PositionType type = PositionType::kNone;
  std::string_view scheme;  ///< of nn that it implements; empty: none has its parameters' shape
  std::string_view spoken;  ///< in messages, before "positions"
  bool input = false;       ///< it is added to the input, which a query stream does not see
};
/// Of all of them: which schemes of nn masque has terms of its own for.
std::span<const OwnPosition> own_positions();
/// The one that implements a scheme; nullptr if there is none.
const OwnPosition* own_position(std::string_view scheme);
/// The one of a type.
const OwnPosition& own_position(PositionType type);

/// Whether positions, masque's own or a scheme's, are added to the input.
bool adds_position(const Design& design);

/// Whether positions act on queries, keys, scores or values, which a mixer does not have.
bool positions_act_in_attention(const Design& design);

/// One spelling of a scheme: without parentheses where there are no arguments. Lists stay.
std::string position_text(std::string_view text);

/// Puts masque's own terms instead of the scheme: of one without arguments, and of `rope` with
/// arguments where config.json can say its base. Leaves others as they are. What is `sinusoidal` to
/// masque has sines in the first half (sinusoidal_interleaved says otherwise). Throws
/// UsageError for angles of an odd head size.
void take_own_position(Design& design);

/// The angles of a scheme that only rotates queries and keys by their positions: `rope`,
/// `rope_yarn` and the like. Nothing for other schemes, for lists, or none.
std::optional<RotaryDesign> rotary_of(const Design& design);
/// Takes PositionType::kRotary with these angles, in all layers, instead of the scheme.
void set_rotary(const RotaryDesign& rotary, Design& design);

/// The mixer of `variants.mixer`; nullptr if that is empty. Throws UsageError for an unknown one.
const nn::Mixer* mixer_of(const Design& design);
nn::MixerShape mixer_shape(const Design& design);
/// Why the mixer cannot stand in the design's streams; nothing if it can, and without one. Of T-TA
/// it mixes the embeddings, with weights that do not depend on the row's own token.
std::optional<std::string> mixer_problem(const Design& design);
/// What it has, or nothing.
std::vector<nn::MixerParameter> mixer_parameters(const Design& design);

/// Whether the weights of all heads exist at once, also while training: talking heads, largest
/// keys, scores of the layer before.
bool joins_heads(const Design& design);

/// Whether attention needs nn::materialized_attention_forward: talking heads, scores of the layer
/// before, largest keys, factors of weights, terms of values.
bool needs_materialized_attention(const Design& design);

/// Which masks a design obeys, and by what it is bound.
struct DesignMasks {
  nn::MaskSupport masks = nn::MaskSupport::kAny;
  std::string part;  ///< "position convolutional(width=3)"; empty: nothing binds it
};
/// Of its position scheme, its mixer and its convolution the one that obeys the fewest.
DesignMasks mask_support(const Design& design);

/// Heads whose scores are normalized: those between the two mixings of talking heads.
Index softmax_heads(const Design& design);
/// Heads of values, those of the context: what Λ after the normalizer gives. As many weights are
/// shown of a layer (Observer::attention).
Index value_heads(const Design& design);
/// Heads in the columns of the value projection: heads of values may share them as they share keys.
Index projected_value_heads(const Design& design);

/// α of the residual that attention (or mixer, or gated unit) of a layer is added to: 0 without
/// VariantDesign::input_residual in the first layer.
double residual_scale(const Design& design, Index layer);
/// Why a design cannot be without the residual of its input; nothing if it can, and with it.
std::optional<std::string> input_residual_problem(const Design& design);

/// In front of which layer VariantDesign::late_positions join; −1: nowhere.
Index late_position_layer(const Design& design);
/// Why a design cannot have its late positions; nothing if it can.
std::optional<std::string> late_position_problem(const Design& design);

/// Columns of what attention, mixer or gated unit gives to the output projection.
Index context_width(const Design& design);

/// The first layer with a latent bottleneck in front of it; num_hidden_layers if there is none.
Index first_latent_layer(const Design& design);

/// Throws UsageError if a design can have no bottleneck: of several streams, of mixers, with a
/// detector, without as many layers, or of a sphere that is none.
void check_latent(const Design& design);

/// Whether what each head gives is multiplied by a number of its own (NormPlacement::kNormFormer).
bool scales_heads(const Design& design);

}  // namespace masque::model
