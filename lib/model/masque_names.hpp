// Words of the family `masque`, as its config.json spells them: for reading and writing.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/string/comma_list.hpp"
#include "model/design.hpp"
#include "model/family_config.hpp"

namespace masque::model {

/// The words of config.json for values of an enumeration.
template <class E, std::size_t N>
using Words = std::array<std::pair<std::string_view, E>, N>;

/// Words of "norm_placement".
inline constexpr Words<NormPlacement, 9> kNormPlacements{
    {{"post", NormPlacement::kPost},
     {"pre", NormPlacement::kPre},
     {"parallel", NormPlacement::kParallel},
     {"parallel_shared", NormPlacement::kParallelShared},
     {"output", NormPlacement::kOutput},
     {"sandwich", NormPlacement::kSandwich},
     {"rezero", NormPlacement::kReZero},
     {"admin", NormPlacement::kAdmin},
     {"normformer", NormPlacement::kNormFormer}}};
/// Words of "norm".
inline constexpr Words<kernel::Norm, 2> kNorms{
    {{"layer", kernel::Norm::kLayer}, {"rms", kernel::Norm::kRms}}};
/// Words of "query_key_norm".
inline constexpr Words<QueryKeyNorm, 4> kQueryKeyNorms{{{"none", QueryKeyNorm::kNone},
                                                        {"head", QueryKeyNorm::kHead},
                                                        {"each_head", QueryKeyNorm::kEachHead},
                                                        {"width", QueryKeyNorm::kWidth}}};
/// Words of "layer_kind".
inline constexpr Words<LayerKind, 2> kLayerKinds{
    {{"transformer", LayerKind::kTransformer}, {"gated_attention", LayerKind::kGatedAttention}}};
/// Words of "mask", besides expressions of the mask language.
inline constexpr Words<DefaultMask, 3> kMasks{{{"full", DefaultMask::kFull},
                                               {"causal", DefaultMask::kCausal},
                                               {"others", DefaultMask::kOthers}}};
/// Words of "streams".
inline constexpr Words<Streams, 4> kStreams{{{"one", Streams::kOne},
                                             {"two", Streams::kTwo},
                                             {"fixed_keys", Streams::kFixedKeys},
                                             {"towers", Streams::kTowers}}};
/// Words of "head"; HeadKind::kText has none.
inline constexpr Words<HeadKind, 5> kHeads{{{"none", HeadKind::kNone},
                                            {"masked", HeadKind::kMasked},
                                            {"causal", HeadKind::kCausal},
                                            {"discriminator", HeadKind::kDiscriminator},
                                            {"energy", HeadKind::kEnergy}}};
/// Words of "talking_heads".
inline constexpr Words<TalkingHeads, 4> kTalkingHeads{{{"none", TalkingHeads::kNone},
                                                       {"before", TalkingHeads::kBefore},
                                                       {"after", TalkingHeads::kAfter},
                                                       {"both", TalkingHeads::kBoth}}};
/// Words of "previous_scores".
inline constexpr Words<PreviousScores, 3> kPreviousScores{
    {{"none", PreviousScores::kNone},
     {"one_layer", PreviousScores::kOneLayer},
     {"accumulated", PreviousScores::kAccumulated}}};
/// Words of "position_embedding_type": masque's own schemes; those of nn are "position". `alibi` is
/// read here, too.
inline constexpr Words<PositionType, 4> kPositionTypes{{{"learned", PositionType::kLearned},
                                                        {"none", PositionType::kNone},
                                                        {"sinusoidal", PositionType::kSinusoidal},
                                                        {"rotary", PositionType::kRotary}}};
/// Words that are written for activations; kernel::find_activation reads these and others.
inline constexpr Words<kernel::Activation, 15> kActivations{
    {{"gelu", kernel::Activation::kGelu},
     {"gelu_new", kernel::Activation::kGeluTanh},
     {"relu", kernel::Activation::kRelu},
     {"relu2", kernel::Activation::kSquaredRelu},
     {"silu", kernel::Activation::kSwish},
     {"tanh", kernel::Activation::kTanh},
     {"sigmoid", kernel::Activation::kSigmoid},
     {"quick_gelu", kernel::Activation::kQuickGelu},
     {"gelu_10", kernel::Activation::kClippedGelu},
     {"mish", kernel::Activation::kMish},
     {"leaky_relu", kernel::Activation::kLeakyRelu},
     {"relu6", kernel::Activation::kRelu6},
     {"laplace", kernel::Activation::kLaplace},
     {"hardswish", kernel::Activation::kHardSwish},
     {"sqrtsoftplus", kernel::Activation::kSqrtSoftplus}}};

/// The word of `words` for `value`; empty if it has none. As valid as `words`.
template <class E, std::size_t N>
std::string_view word_of(const Words<E, N>& words, E value) {
  for (const auto& [word, own] : words) {
    if (own == value) return word;
  }
  return {};
}

/// The value of the word `given` in `words`; none: no such word.
template <class E, std::size_t N>
std::optional<E> find_word(const Words<E, N>& words, std::string_view given) {
  for (const auto& [word, value] : words) {
    if (word == given) return value;
  }
  return std::nullopt;
}

/// The value in `words` of the word that the option `name` of `config` has; `fallback` if it is
/// absent. Throws InputError that lists the words.
template <class E, std::size_t N>
E read_word(const FamilyConfig& config, std::string_view name, const Words<E, N>& words,
            E fallback) {
  if (!config.has(name)) return fallback;
  const std::string given = config.text(name, "");
  if (const std::optional<E> found = find_word(words, given)) return *found;
  config.refuse(name, "one of " + comma_list(words, [](const auto& word) {
                        return fmt::format("\"{}\"", word.first);
                      }));
}

/// Sets the masks of `design` to those of the option "mask" of `config`, a word or an expression of
/// the mask language; leaves them as they are if it is absent. Throws InputError for one that is
/// none or does not fit the layers.
void read_mask(const FamilyConfig& config, Design& design);
/// The masks of `design` as that option has them.
std::string mask_word(const Design& design);

/// Sets the detector of `design` to that of the option "detector" of `config`, an object of its
/// sizes; leaves it as it is if that is absent. Sizes that it lacks are the design's. Throws
/// InputError for a design that can have none.
void read_detector(const FamilyConfig& config, Design& design);
/// The JSON object of `detector` as that option has it.
std::string detector_json(const DetectorDesign& detector);

/// Sets the latent bottlenecks of `design` to those of the option "latent" of `config`, an object;
/// leaves them as they are if it is absent. Throws InputError for what the design cannot have.
void read_latent(const FamilyConfig& config, Design& design);
/// The JSON object of `latent` as that option has it.
std::string latent_json(const LatentDesign& latent);

}  // namespace masque::model
