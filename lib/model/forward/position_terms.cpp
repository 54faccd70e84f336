#include "model/forward/position_terms.hpp"

#include <algorithm>
#include <complex>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/chunk.hpp"
#include "model/masks.hpp"

namespace masque::model {

namespace {

// Positions of a sequence may lie this far apart where a table of all distances is made.
constexpr Index kFarthest = Index{1} << 20;

template <class T>
std::unique_ptr<nn::PositionTerms<T>> scheme_terms(const PositionInputs<T>& inputs) {
  nn::PositionProblem<T> problem;
  problem.shape = inputs.shape;
  problem.positions = inputs.positions;
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
      inputs.table.rows = design.relative_buckets;
      inputs.d_table.rows = design.relative_buckets;
      return nn::t5_terms<T>(inputs.table, inputs.d_table, design.relative_max_distance,
                             !design.relative_backwards, inputs.positions);
    case PositionType::kXlnet: return nn::xlnet_terms(xlnet_of(design, inputs), inputs.positions);
    case PositionType::kDisentangled: {
      nn::DisentangledTerms<T>& terms = inputs.disentangled;
      terms.buckets = design.position_buckets;
      terms.max_distance = design.max_relative_positions;
      terms.span = terms.buckets > 0 ? terms.buckets : terms.max_distance;
      terms.scale = design.attention_scale;
      return nn::disentangled_terms(terms, inputs.positions);
    }
    default: break;
  }
  const BlockSparseDesign* blocks = inputs.blocks;
  if (blocks == nullptr || std::ssize(inputs.positions.keys) <= blocks->full_length) return nullptr;
  return nn::repeated_block_terms<T>(blocks->block_size, blocks->repeats, inputs.positions);
}

bool has_position_terms(const Design& design) {
  return !design.variants.position.empty() || design.position == PositionType::kT5 ||
         design.position == PositionType::kXlnet ||
         design.position == PositionType::kDisentangled || sparse_blocks(design) != nullptr;
}

nn::PositionIds counted_positions(Index begin, Index end,
                                  std::optional<std::span<const Index>> rows,
                                  std::vector<Index>& counted) {
  const auto keys = static_cast<std::size_t>(end - begin);
  counted.resize(keys);
  std::iota(counted.begin(), counted.end(), Index{0});
  if (rows) {
    for (const Index row : *rows) counted.push_back(row - begin);
  }
  const std::span<const Index> all(counted);
  return {rows ? all.subspan(keys) : all, all.first(keys)};
}

template <class T>
XlnetDistances<T> xlnet_distances(const Design& design, std::span<const Index> positions,
                                  std::span<const Index> begins, std::string_view path) {
  XlnetDistances<T> found;
  for (Index s = 0; s + 1 < std::ssize(begins); ++s) {
    const auto own = of_sequence(positions, begins, s);
    if (own.empty()) continue;
    const auto [low, high] = std::ranges::minmax(own);
    found.first = std::max(found.first, high - low);
  }
  const Index farthest = found.first;
  if (farthest > kFarthest) {
    const std::string problem =
        fmt::format("positions {} apart, expected at most {}", farthest, kFarthest);
    throw path.empty() ? InputError(problem) : InputError(path, problem);
  }
  std::vector<double> distances;
  distances.reserve(static_cast<std::size_t>(2 * farthest + 1));
  const Index clamp = design.distance_clamp > 0 ? design.distance_clamp : farthest;
  for (Index d = farthest; d >= -farthest; --d)
    distances.push_back(static_cast<double>(std::clamp(d, -clamp, clamp)));
  found.waves = Matrix<T>(2 * farthest + 1, design.hidden_size);
  nn::sinusoidal_table<T>(distances, false, found.waves.view());
  return found;
}

template std::unique_ptr<nn::PositionTerms<float>> position_terms(const Design&,
                                                                  PositionInputs<float>);
template std::unique_ptr<nn::PositionTerms<double>> position_terms(const Design&,
                                                                   PositionInputs<double>);
template std::unique_ptr<nn::PositionTerms<std::complex<double>>> position_terms(
    const Design&, PositionInputs<std::complex<double>>);
template XlnetDistances<float> xlnet_distances(const Design&, std::span<const Index>,
                                               std::span<const Index>, std::string_view);
template XlnetDistances<double> xlnet_distances(const Design&, std::span<const Index>,
                                                std::span<const Index>, std::string_view);
template XlnetDistances<std::complex<double>> xlnet_distances(const Design&, std::span<const Index>,
                                                              std::span<const Index>,
                                                              std::string_view);

}  // namespace masque::model
