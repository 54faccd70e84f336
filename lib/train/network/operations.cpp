#include "train/network/operations.hpp"

#include <algorithm>

#include "model/checkpoint/placed.hpp"
#include "model/variants.hpp"

namespace masque::train {

namespace {

using model::Role;

/// Whether a role's weight meets every token.
bool of_layers(Role role) {
  switch (role) {
    case Role::kQuery:
    case Role::kKey:
    case Role::kValue:
    case Role::kOutput:
    case Role::kUp:
    case Role::kGate:
    case Role::kDown:
    case Role::kGatedInput:
    case Role::kEmbeddingProjection: return true;
    default: return false;
  }
}

}  // namespace

template <class T>
double step_operations(const model::Design& design, const ParameterMap& map,
                       const Parameters<T>& parameters, const Work& work) {
  double layers = 0, head = 0;
  const auto size = [&](Index parameter) {
    return static_cast<double>(parameters[parameter].size());
  };
  // Layers that share weights use them each.
  const double uses = static_cast<double>(design.num_hidden_layers) /
                      static_cast<double>(std::max<Index>(1, model::count_layers(design)));
  map.for_each([&](Role role, bool bias, Index, Index, Index parameter) {
    if (bias) return;
    if (of_layers(role)) {
      layers += role == Role::kEmbeddingProjection ? size(parameter) : uses * size(parameter);
    } else if (role == Role::kHeadTransform || role == Role::kDecoder) {
      head += size(parameter);
    }
  });
  const bool vocabulary =
      design.head.kind == model::HeadKind::kMasked || design.head.kind == model::HeadKind::kCausal;
  const Index table = map.weight(Role::kWordTable);
  if (vocabulary && map.weight(Role::kDecoder) == ParameterMap::kNone &&
      table != ParameterMap::kNone)
    head += size(table);
  const Index query_width = design.layer_kind == model::LayerKind::kGatedAttention
                                ? design.attention_key_size
                                : design.num_attention_heads * design.head_size;
  const double wide = static_cast<double>(query_width + model::context_width(design)) / 2;
  const double attention =
      design.variants.mixer.empty()
          ? 12 * work.length * wide * static_cast<double>(design.num_hidden_layers)
          : 0;
  return work.tokens * (6 * layers + attention) + work.rows * 6 * head;
}

template double step_operations(const model::Design&, const ParameterMap&, const Parameters<float>&,
                                const Work&);

}  // namespace masque::train
