#include "model/position_terms.hpp"

#include <algorithm>
#include <complex>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::model {

namespace {

// Positions of a sequence may lie this far apart where a table of all distances is made.
constexpr Index kFarthest = Index{1} << 20;

template <class T>
std::unique_ptr<nn::PositionTerms<T>> scheme_terms(const PositionInputs<T>& inputs) {
  nn::PositionProblem<T> problem;
  problem.shape = inputs.shape;
  problem.places = inputs.places;
  problem.parameters = inputs.parameters;
  problem.gradients = inputs.gradients;
  problem.query_segments = inputs.query_segments;
  problem.key_segments = inputs.key_segments;
  problem.draw = inputs.draw;
  return inputs.scheme->terms(problem);
}

template <class T>
nn::XlnetTerms<T> xlnet_of(const Design& design, const PositionInputs<T>& inputs) {
  nn::XlnetTerms<T> terms = inputs.xlnet;
  terms.row = [first = inputs.first_distance](Index distance) { return first - distance; };
  terms.scale = design.attention_scale;
  // One segment throughout adds the same to every key: left out, as without token types.
  const auto& types = inputs.key_segments;
  if (std::ranges::adjacent_find(types, std::ranges::not_equal_to{}) == types.end()) {
    terms.segment_table = {};
  } else {
    terms.query_segments = inputs.query_segments;
    terms.key_segments = types;
  }
  return terms;
}

}  // namespace

template <class T>
std::unique_ptr<nn::PositionTerms<T>> position_terms(const Design& design,
                                                     PositionInputs<T> inputs) {
  if (inputs.scheme != nullptr) return scheme_terms(inputs);
  switch (design.position) {
    case PositionType::kT5:
      return nn::t5_terms<T>(inputs.table, inputs.d_table, design.relative_max_distance, true,
                             inputs.places);
    case PositionType::kAlibi: return nn::alibi_terms<T>(design.num_attention_heads, inputs.places);
    case PositionType::kXlnet: return nn::xlnet_terms(xlnet_of(design, inputs), inputs.places);
    case PositionType::kDisentangled: {
      nn::DisentangledTerms<T>& terms = inputs.disentangled;
      terms.buckets = design.position_buckets;
      terms.max_distance = design.max_relative_positions;
      terms.span = terms.buckets > 0 ? terms.buckets : terms.max_distance;
      terms.scale = design.attention_scale;
      return nn::disentangled_terms(terms, inputs.places);
    }
    default: return nullptr;
  }
}

template <class T>
Matrix<T> xlnet_waves(const Design& design, Index farthest) {
  std::vector<double> distances;
  distances.reserve(static_cast<std::size_t>(2 * farthest + 1));
  const Index clamp = design.distance_clamp > 0 ? design.distance_clamp : farthest;
  for (Index d = farthest; d >= -farthest; --d)
    distances.push_back(static_cast<double>(std::clamp(d, -clamp, clamp)));
  Matrix<T> waves(2 * farthest + 1, design.hidden_size);
  nn::sinusoidal_table<T>(distances, false, waves.view());
  return waves;
}

Index farthest_distance(std::span<const Index> positions, std::string_view path) {
  if (positions.empty()) return 0;
  const auto [low, high] = std::ranges::minmax(positions);
  if (high - low > kFarthest) {
    const std::string problem =
        fmt::format("positions {} apart, expected at most {}", high - low, kFarthest);
    throw path.empty() ? InputError(problem) : InputError(path, problem);
  }
  return high - low;
}

#define MASQUE_INSTANTIATE(T)                                                                      \
  template std::unique_ptr<nn::PositionTerms<T>> position_terms(const Design&, PositionInputs<T>); \
  template Matrix<T> xlnet_waves(const Design&, Index);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::model
