// The attention of a layer, sequence by sequence.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "model/pass.hpp"
#include "nn/position.hpp"

namespace masque::model {
namespace {

// Positions of a sequence may lie this far apart where a table of all distances is made.
constexpr Index kFarthest = Index{1} << 20;

template <class V>
std::span<const Index> part(const V& values, std::span<const Index> begins, Index sequence) {
  if (values.empty()) return {};
  const auto begin = static_cast<std::size_t>(begins[static_cast<std::size_t>(sequence)]);
  const auto end = static_cast<std::size_t>(begins[static_cast<std::size_t>(sequence) + 1]);
  return std::span<const Index>(values).subspan(begin, end - begin);
}

/// Keys that each query may read.
std::vector<Index> visible_of(const mask::BlockMap* blocks, Index queries, Index keys) {
  std::vector<Index> visible(static_cast<std::size_t>(queries), keys);
  for (Index i = 0; i < queries && blocks != nullptr; ++i)
    visible[static_cast<std::size_t>(i)] = blocks->visible(i);
  return visible;
}

}  // namespace

template <class T>
const std::vector<std::shared_ptr<const mask::BlockMap>>& Pass<T>::blocks(Index layer,
                                                                          const Stream<T>& stream) {
  const std::size_t kind = masks_.kind(layer);
  const auto [found, fresh] = blocks_.try_emplace({kind, stream.kind});
  if (!fresh) return found->second;
  found->second.reserve(static_cast<std::size_t>(chunk_.sequences()));
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    const Index begin = chunk_.begins[static_cast<std::size_t>(s)];
    const Index length = chunk_.begins[static_cast<std::size_t>(s) + 1] - begin;
    std::vector<Index> rows;
    if (stream.kind != StreamKind::kContent) {
      const std::span<const Index> own = part(stream.rows, stream.begins, s);
      rows.reserve(own.size());
      for (const Index row : own) rows.push_back(row - begin);
    }
    if (rows.empty() && stream.kind != StreamKind::kContent) {
      found->second.push_back(nullptr);
      continue;
    }
    const auto place = static_cast<std::size_t>(chunk_.first_sequence + s);
    const auto& given = stream.kind == StreamKind::kQuery ? batch_.query_masks : batch_.masks;
    found->second.push_back(
        masks_.blocks(kind, length, rows, given.empty() ? std::nullopt : given[place]));
  }
  return found->second;
}

template <class T>
void Pass<T>::make_distances() {
  Index farthest = 0;
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    const auto own = part(content_.positions, chunk_.begins, s);
    if (own.empty()) continue;
    const auto [low, high] = std::minmax_element(own.begin(), own.end());
    farthest = std::max(farthest, *high - *low);
  }
  if (farthest > kFarthest) {
    throw InputError(model_.path,
                     fmt::format("positions {} apart, expected at most {}", farthest, kFarthest));
  }
  first_distance_ = farthest;
  std::vector<double> distances;
  distances.reserve(static_cast<std::size_t>(2 * farthest + 1));
  const Index clamp = design_.distance_clamp > 0 ? design_.distance_clamp : farthest;
  for (Index d = farthest; d >= -farthest; --d) {
    distances.push_back(static_cast<double>(std::clamp(d, -clamp, clamp)));
  }
  distances_ = Matrix<T>(2 * farthest + 1, design_.hidden_size);
  nn::sinusoidal_table<T>(distances, false, distances_.view());
}

template <class T>
void Pass<T>::project_relative(const PreparedLayer<T>& weights) {
  if (distances_.rows() == 0) make_distances();
  scratch_.relative.resize(distances_.rows(), weights.relative.outputs());
  weights.relative.forward(distances_.view(), scratch_.relative.view());
}

template <class T>
nn::PositionIds Pass<T>::places(const Stream<T>& stream, Index sequence,
                                std::vector<Index>& counted) const {
  const std::span<const Index> keys = part(content_.positions, chunk_.begins, sequence);
  if (!model_.position_table) return {part(stream.positions, stream.begins, sequence), keys};
  // Given positions move the table's rows; relative terms next to it count places, as in
  // transformers.
  counted.resize(keys.size());
  std::iota(counted.begin(), counted.end(), Index{0});
  if (stream.kind != StreamKind::kContent) {
    const Index begin = chunk_.begins[static_cast<std::size_t>(sequence)];
    for (const Index row : part(stream.rows, stream.begins, sequence)) {
      counted.push_back(row - begin);
    }
  }
  const std::span<const Index> all(counted);
  const auto places_of_keys = all.first(keys.size());
  return {stream.kind == StreamKind::kContent ? places_of_keys : all.subspan(keys.size()),
          places_of_keys};
}

template <class T>
std::unique_ptr<nn::ScoreBias<T>> Pass<T>::position_terms(Index layer, const Stream<T>& stream,
                                                          MatrixView<const T> query, Index sequence,
                                                          nn::PositionIds places) const {
  const PreparedLayer<T>& weights = model_.layer(layer);
  switch (design_.position) {
    case PositionType::kT5:
      return nn::t5_bias<T>(model_.relative_table.view, design_.relative_max_distance, true,
                            places);
    case PositionType::kAlibi: return nn::alibi_bias<T>(design_.num_attention_heads, places);
    case PositionType::kXlnet: {
      nn::XlnetTerms<T> terms;
      terms.query = query;
      terms.relative = scratch_.relative.view();
      terms.first_distance = first_distance_;
      terms.position_bias = weights.position_bias.span();
      terms.scale = design_.attention_scale;
      // One segment throughout adds the same to every key: left out, as without token types.
      const auto types = part(content_.segments, chunk_.begins, sequence);
      if (std::ranges::adjacent_find(types, std::ranges::not_equal_to{}) != types.end()) {
        terms.segment_bias = weights.segment_bias.span();
        terms.segment_table = weights.segment_table.view;
        terms.query_segments = part(stream.segments, stream.begins, sequence);
        terms.key_segments = part(content_.segments, chunk_.begins, sequence);
      }
      return nn::xlnet_bias<T>(terms, places);
    }
    case PositionType::kDisentangled: {
      nn::DisentangledTerms<T> terms;
      terms.position_key = weights.position_key.view();
      terms.position_query = weights.position_query.view();
      terms.buckets = design_.position_buckets;
      terms.max_distance = design_.max_relative_positions;
      terms.span = terms.buckets > 0 ? terms.buckets : terms.max_distance;
      terms.scale = design_.attention_scale;
      return nn::disentangled_bias<T>(terms, places);
    }
    default: return nullptr;
  }
}

template <class T>
void Pass<T>::attend_sequence(Index layer, const Stream<T>& stream, const Shape& shape,
                              MatrixView<const T> query, Index sequence,
                              const mask::BlockMap* blocks, MatrixView<T> context) {
  const auto s = static_cast<std::size_t>(sequence);
  const Index queries = stream.begins[s + 1] - stream.begins[s];
  const Index keys = chunk_.begins[s + 1] - chunk_.begins[s];
  if (queries == 0) return;
  const MatrixView<const T> own = query.middle_rows(stream.begins[s], queries);
  std::vector<Index> counted;
  const nn::PositionIds where = places(stream, sequence, counted);
  const std::unique_ptr<nn::ScoreBias<T>> bias =
      position_terms(layer, stream, own, sequence, where);
  const std::unique_ptr<nn::PositionTerms<T>> terms = scheme_terms(layer, stream, sequence, where);
  nn::AttentionProblem<T> problem;
  problem.query = own;
  Matrix<T> moved;
  const PreparedLayer<T>& weights = model_.layer(layer);
  if (weights.content_bias) {  // XLNet's r_w_bias
    moved = Matrix<T>::copy(own);
    const std::span<const T> added = weights.content_bias.span();
    for (Index i = 0; i < queries; ++i) {
      T* row = moved.view().row(i);
      for (std::size_t c = 0; c < added.size(); ++c) row[c] += added[c];
    }
    problem.query = moved.view();
  }
  problem.key = key_.middle_rows(chunk_.begins[s], keys);
  problem.value = value_.middle_rows(chunk_.begins[s], keys);
  problem.num_heads = shape.heads;
  problem.num_key_value_heads = shape.key_heads;
  problem.scale = shape.scale;
  problem.normalizer = normalizer_;
  problem.bias = terms ? terms->bias() : bias.get();
  Matrix<T> moved_key;
  if (model_.scheme_facts.query_key) {
    moved = Matrix<T>::copy(own);
    moved_key = Matrix<T>::copy(problem.key);
    terms->query_key(moved.view(), moved_key.view());
    problem.query = moved.view();
    problem.key = moved_key.view();
  }
  problem.blocks = blocks;
  problem.bf16 = model_.precision == kernel::Precision::kBf16;
  const bool mean = override_of(layer) == AttentionOverride::kMean;
  if (mean) {
    // Queries of zeros score every key alike.
    moved = Matrix<T>::zero(own.rows, own.columns);
    problem.query = moved.view();
    problem.bias = nullptr;
    problem.normalizer = nn::find_normalizer("softmax");
  }
  nn::WeightsVisitor<T> visit;
  Matrix<T> log_divisors;
  Matrix<T> scores;
  std::vector<Index> visible;
  if (request_.attentions && observer_ != nullptr && stream.kind != StreamKind::kQuery) {
    if (request_.attention_rows) {
      log_divisors = Matrix<T>(shape.heads, queries);
      if (request_.attention_scores) scores = Matrix<T>(shape.heads * queries, keys);
      visible = visible_of(blocks, queries, keys);
    }
    problem.log_divisors = log_divisors.view();
    problem.scores = scores.view();
    visit = [&, number = chunk_.first_sequence + sequence](Index head, MatrixView<const T> seen) {
      if (request_.attention_rows) {
        AttentionRows<T> rows{log_divisors.view().row_span(head), visible, {}};
        if (!problem.scores.empty())
          rows.scores = problem.scores.middle_rows(head * queries, queries);
        observer_->attention_rows(number, layer, head, rows);
      }
      observer_->attention(number, layer, head, seen);
    };
  }
  const MatrixView<T> out = context.middle_rows(stream.begins[s], queries);
  if (model_.materialized_attention && !mean) {
    return attend_general(layer, stream, sequence, problem, terms.get(), out, visit);
  }
  nn::choose_evaluation(queries, keys, blocks).forward(problem, out, visit);
}

template <class T>
void Pass<T>::attend(Index layer, const Stream<T>& stream, const Shape& shape,
                     MatrixView<const T> query, MatrixView<T> context) {
  const auto& maps = blocks(layer, stream);
  previous_[stream.kind].resize(static_cast<std::size_t>(chunk_.sequences()));
  const auto work = [&](Index s) {
    attend_sequence(layer, stream, shape, query, s, maps[static_cast<std::size_t>(s)].get(),
                    context);
  };
  // A few long sequences are split inside, by heads.
  if (chunk_.sequences() >= Index{2} * kernel::threads()) {
    kernel::parallel_items(chunk_.sequences(), work);
  } else {
    for (Index s = 0; s < chunk_.sequences(); ++s) work(s);
  }
}

template void Pass<float>::attend(Index, const Stream<float>&, const Shape&,
                                  MatrixView<const float>, MatrixView<float>);
template void Pass<float>::project_relative(const PreparedLayer<float>&);
template void Pass<double>::attend(Index, const Stream<double>&, const Shape&,
                                   MatrixView<const double>, MatrixView<double>);
template void Pass<double>::project_relative(const PreparedLayer<double>&);

}  // namespace masque::model
