// The attention of a layer, sequence by sequence.
#include <algorithm>
#include <optional>

#include "kernel/parallel.hpp"
#include "model/pass.hpp"

namespace masque::model {
namespace {

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
      const std::span<const Index> own = of_sequence(stream.rows, stream.begins, s);
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
void Pass<T>::project_relative(const PreparedLayer<T>& weights) {
  if (distances_.waves.rows() == 0)
    distances_ = xlnet_distances<T>(design_, content_.positions, chunk_.begins, model_.path);
  scratch_.relative.resize(distances_.waves.rows(), weights.relative.outputs());
  weights.relative.forward(distances_.waves.view(), scratch_.relative.view());
}

template <class T>
std::unique_ptr<nn::PositionTerms<T>> Pass<T>::terms(Index layer, const Stream<T>& stream,
                                                     Index sequence,
                                                     std::vector<Index>& counted) const {
  if (!has_position_terms(design_)) return nullptr;
  const PreparedLayer<T>& weights = model_.layer(layer);
  PositionInputs<T> in;
  if (model_.position_table) {
    const auto begin = chunk_.begins[static_cast<std::size_t>(sequence)];
    const auto end = chunk_.begins[static_cast<std::size_t>(sequence) + 1];
    std::optional<std::span<const Index>> rows;
    if (stream.kind != StreamKind::kContent)
      rows = of_sequence(stream.rows, stream.begins, sequence);
    in.places = counted_places(begin, end, rows, counted);
  } else {
    in.places = {of_sequence(stream.positions, stream.begins, sequence),
                 of_sequence(content_.positions, chunk_.begins, sequence)};
  }
  in.query_segments = of_sequence(stream.segments, stream.begins, sequence);
  in.key_segments = of_sequence(content_.segments, chunk_.begins, sequence);
  // A scheme that acts on the input has no terms.
  if (model_.scheme && !model_.scheme_facts.input) in.scheme = model_.scheme.get();
  in.shape = model_.scheme_shape;
  in.parameters = model_.position_is_shared ? model_.shared_position.views : weights.position.views;
  in.table = model_.relative_table.view;
  in.first_distance = distances_.first;
  in.xlnet.relative = scratch_.relative.view();
  in.xlnet.content_bias = weights.content_bias.view;
  in.xlnet.position_bias = weights.position_bias.view;
  in.xlnet.segment_bias = weights.segment_bias.view;
  in.xlnet.segment_table = weights.segment_table.view;
  in.disentangled.position_key = weights.position_key.view();
  in.disentangled.position_query = weights.position_query.view();
  return position_terms(design_, in);
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
  const std::unique_ptr<nn::PositionTerms<T>> terms = this->terms(layer, stream, sequence, counted);
  nn::AttentionProblem<T> problem;
  problem.query = own;
  problem.key = key_.middle_rows(chunk_.begins[s], keys);
  problem.value = value_.middle_rows(chunk_.begins[s], keys);
  problem.num_heads = shape.heads;
  problem.num_key_value_heads = shape.key_heads;
  problem.scale = shape.scale;
  problem.normalizer = normalizer_;
  if (terms) problem.bias = terms->bias();
  Matrix<T> moved_query, moved_key;
  if (model_.scheme_facts.query_key) {
    moved_query = Matrix<T>::copy(own);
    moved_key = Matrix<T>::copy(problem.key);
    terms->query_key(moved_query.view(), moved_key.view());
    problem.query = moved_query.view();
    problem.key = moved_key.view();
  }
  problem.blocks = blocks;
  problem.bf16 = model_.precision == kernel::Precision::kBf16;
  const bool mean = override_of(layer) == AttentionOverride::kMean;
  if (mean) {
    // Queries of zeros score every key alike.
    moved_query = Matrix<T>::zero(own.rows, own.columns);
    problem.query = moved_query.view();
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
