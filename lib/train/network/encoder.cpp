#include "train/network/encoder.hpp"

#include <complex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/detector.hpp"
#include "model/variants.hpp"

namespace masque::train {

namespace {

using model::Role;

// Numbers in the weights of the layers, from which on the memory of packed ones (8 bytes a number)
// costs more than the time to pack them again for each chunk.
constexpr Index kLarge = Index{1} << 25;

void check_trainable(const model::Design& design) {
  const auto refuse = [&](std::string_view what) {
    throw UsageError(fmt::format("{} cannot be trained: {}", design.family, what));
  };
  if (const auto problem = model::mixer_problem(design)) refuse(*problem);
  if (const auto problem = model::input_residual_problem(design)) refuse(*problem);
  if (const auto problem = model::late_position_problem(design)) refuse(*problem);
  model::check_score_scale(design);
  const auto scheme = model::position_scheme(design);
  if (scheme != nullptr && scheme->facts().input && design.streams == model::Streams::kTwo)
    refuse("a query stream has no input for its positions");
}

}  // namespace

template <class T>
Encoder<T>::Encoder(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
                    kernel::Precision precision)
    : design_(design),
      map_(map),
      parameters_(&parameters),
      precision_(precision),
      masks_(design, {}),
      normalizers_(model::layer_normalizers(design)),
      scheme_(design.variants.position.scheme()),
      scheme_shape_(model::position_shape(design)),
      position_is_shared_(model::shares_position(design)),
      has_position_(model::layers_with_position(design)),
      mixer_(design.variants.mixer),
      mixer_shape_(model::mixer_shape(design)) {
  check_trainable(design_);
  mixer_parameters_ = model::mixer_parameters(design);
  materialized_ = model::joins_heads(design);
  const auto dense = [&](std::initializer_list<Role> roles, Index layer) {
    return Dense<T>(parameters, map_, roles, layer, precision);
  };
  const auto norm = [&](Role role, Index layer, const model::NormDesign& norm_design) {
    return TrainedNorm<T>(parameters, map_, role, layer, norm_design);
  };
  const bool same_rows =
      design.streams == model::Streams::kOne || design.streams == model::Streams::kTowers;
  for (Index l = 0; l < model::count_layers(design); ++l) {
    EncoderLayer<T> layer;
    layer.output = dense({Role::kOutput}, l);
    if (design.position == model::PositionType::kXlnet) {
      layer.distance_key = dense({Role::kRelative}, l);
    } else if (design.position == model::PositionType::kDisentangled) {
      const bool share = design.share_attention_key;
      if (design.content_to_position)
        layer.distance_key = dense({share ? Role::kKey : Role::kPositionKey}, l);
      if (design.position_to_content)
        layer.distance_query = dense({share ? Role::kQuery : Role::kPositionQuery}, l);
    }
    layer.convolution = dense({Role::kConvolution}, l);
    layer.query_norm = norm(Role::kQueryNorm, l, design.norm);
    layer.key_norm = norm(Role::kKeyNorm, l, design.norm);
    layer.attention_norm = norm(Role::kAttentionNorm, l, design.norm);
    layer.feed_forward_norm = norm(Role::kFeedForwardNorm, l, design.norm);
    layer.convolution_norm = norm(Role::kConvolutionNorm, l, design.norm);
    layer.attention_output_norm = norm(Role::kAttentionOutputNorm, l, design.norm);
    layer.feed_forward_output_norm = norm(Role::kFeedForwardOutputNorm, l, design.norm);
    layer.feed_forward_inner_norm = norm(Role::kFeedForwardInnerNorm, l, design.norm);
    if (design.layer_kind == model::LayerKind::kGatedAttention) {
      layer.gated_input = dense({Role::kGatedInput}, l);
    } else {
      if (mixer_ == nullptr) {
        if (design.streams != model::Streams::kFixedKeys)
          layer.all = dense({Role::kQuery, Role::kKey, Role::kValue}, l);
        if (!same_rows || design.layers.back().weights == l) {
          layer.query = dense({Role::kQuery}, l);
          layer.key_value = dense({Role::kKey, Role::kValue}, l);
        }
      }
      layer.up = dense({Role::kGate, Role::kUp}, l);
      layer.down = dense({Role::kDown}, l);
    }
    // Rounding would change which experts a token goes through.
    const bool rounds = precision == kernel::Precision::kBf16;
    layer.router = Dense<T>(parameters, map_, {Role::kRouter}, l,
                            rounds ? kernel::Precision::kF32 : precision);
    const Index experts = layer.router.outputs();
    for (Index e = 0; e < experts; ++e) {
      layer.expert_up.emplace_back(parameters, map_,
                                   std::initializer_list{Role::kExpertGate, Role::kExpertUp}, l,
                                   precision, e);
      layer.expert_down.emplace_back(parameters, map_, std::initializer_list{Role::kExpertDown}, l,
                                     precision, e);
    }
    layer.shared_expert_up = dense({Role::kSharedExpertGate, Role::kSharedExpertUp}, l);
    layer.shared_expert_down = dense({Role::kSharedExpertDown}, l);
    layer.shared_expert_weight = dense({Role::kSharedExpertWeight}, l);
    layer.source_query = dense({Role::kSourceQuery}, l);
    layer.source_key_value = dense({Role::kSourceKey, Role::kSourceValue}, l);
    layer.source_output = dense({Role::kSourceOutput}, l);
    layer.source_norm = norm(Role::kSourceNorm, l, design.norm);
    layers_.push_back(std::move(layer));
  }
  projection_ = dense({Role::kEmbeddingProjection}, 0);
  if (design.embedding_norm)
    embedding_norm_ = norm(Role::kEmbeddingNorm, 0, *design.embedding_norm);
  if (design.final_norm) final_norm_ = norm(Role::kFinalNorm, 0, design.norm);
  if (design.relative_norm) relative_norm_ = norm(Role::kRelativeNorm, 0, design.norm);
  if (design.variants.detector) {
    detector_ = std::make_shared<Detector>(model::detector_design(design), map.detector(),
                                           parameters, precision);
  }
  Index size = 0;
  for (EncoderLayer<T>& layer : layers_) {
    layer.for_each([&](const Dense<T>& part) { size += part.size(); });
  }
  large_ = size >= kLarge;
  if (!large_) return;
  room_ = std::make_shared<kernel::TrainedLinear<T>>();
  for (EncoderLayer<T>& layer : layers_) {
    layer.for_each([&](Dense<T>& part) { part.share(room_); });
  }
}

template <class T>
void Encoder<T>::prepare() {
  if (detector_) {
    detector_->encoder.prepare();
    detector_->decoder.prepare();
  }
  find_lowest();
  for (EncoderLayer<T>& layer : layers_) layer.for_each([](Dense<T>& part) { part.prepare(); });
  projection_.prepare();
}

template class Encoder<float>;
template class Encoder<double>;
template class Encoder<std::complex<double>>;

}  // namespace masque::train
