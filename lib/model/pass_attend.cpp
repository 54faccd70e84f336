// The attention of a layer, sequence by sequence.
#include <algorithm>
#include <optional>
#include <utility>

#include "kernel/parallel.hpp"
#include "model/forward/score_scale.hpp"
#include "model/pass.hpp"
#include "nn/row_attention.hpp"

namespace masque::model {
namespace {

/// Keys that each query of a head may read.
std::vector<Index> visible_of(const mask::BlockMap* blocks, Index queries, Index keys) {
  std::vector<Index> visible(static_cast<std::size_t>(queries), keys);
  for (Index i = 0; i < queries && blocks != nullptr; ++i)
    visible[static_cast<std::size_t>(i)] = blocks->visible(i);
  return visible;
}

}  // namespace

template <class T>
const std::vector<std::shared_ptr<const mask::BlockMap>>& Pass<T>::blocks(
    Index layer, const StreamRows& stream) {
  const auto& given = stream.kind == StreamKind::kQuery ? batch_.query_masks : batch_.masks;
  std::span<const std::optional<mask::Mask>> own = given;
  if (!own.empty()) own = own.subspan(static_cast<std::size_t>(chunk_.first_sequence));
  return masks_of_streams_.blocks(masks_, layer, stream, read_rows(), own, {},
                                  batch_.masks_join ? OwnMask::kJoins : OwnMask::kReplaces);
}

template <class T>
std::unique_ptr<nn::PositionTerms<T>> Pass<T>::terms(Index layer, const StreamRows& stream,
                                                     Index sequence,
                                                     std::vector<Index>& counted) const {
  if (!has_position_terms(design_) || !model_.has_position[static_cast<std::size_t>(layer)])
    return nullptr;
  const PreparedLayer<T>& weights = model_.layer(layer);
  PositionInputs<T> in;
  set_rows(stream, read_rows(), sequence, static_cast<bool>(model_.position_table), counted, in);
  // A scheme that acts on the input has no terms.
  if (model_.scheme && !model_.scheme_facts.input) in.scheme = model_.scheme.get();
  in.shape = model_.scheme_shape;
  in.parameters = model_.position_is_shared ? model_.shared_position.views : weights.position.views;
  in.table = model_.relative_table.view;
  in.first_distance = distances_.first;
  in.xlnet.relative = memory_.distance_keys.view();
  in.xlnet.content_bias = weights.content_bias.view;
  in.xlnet.position_bias = weights.position_bias.view;
  in.xlnet.segment_bias = weights.segment_bias.view;
  in.xlnet.segment_table = weights.segment_table.view;
  in.disentangled.position_key = weights.position_key.view();
  in.disentangled.position_query = weights.position_query.view();
  return position_terms(design_, in);
}

template <class T>
nn::AttentionProblem<T> Pass<T>::problem_of(Index layer, const StreamRows& stream,
                                            const HeadSizes& heads, const Projected<T>& projected,
                                            Index sequence) const {
  if (cache_ == nullptr)
    return attention_problem(design_, layer, heads, stream, content_, sequence, projected);
  const Index number = chunk_.first_sequence + sequence;
  return attention_problem<T>(
      design_, layer, heads,
      projected.query.middle_rows(stream.begin(sequence), stream.count(sequence)),
      cache_->keys(layer, number), cache_->values(layer, number));
}

template <class T>
void Pass<T>::attend_sequence(Index layer, const StreamRows& stream, const HeadSizes& heads,
                              const Projected<T>& projected, Index sequence,
                              const mask::BlockMap* blocks, MatrixView<T> context) {
  const Index queries = stream.count(sequence);
  const Index keys = read_rows().count(sequence);
  if (queries == 0) return;
  std::vector<Index> counted;
  const std::unique_ptr<nn::PositionTerms<T>> terms = this->terms(layer, stream, sequence, counted);
  nn::AttentionProblem<T> problem = problem_of(layer, stream, heads, projected, sequence);
  problem.normalizer = settings_.normalizers[static_cast<std::size_t>(layer)].get();
  if (terms) problem.bias = terms->bias();
  Matrix<T> moved_query, moved_key;
  if (terms && model_.scheme_facts.query_key) {
    moved_query = Matrix<T>::copy(problem.query);
    moved_key = Matrix<T>::copy(problem.key);
    terms->query_key(moved_query.view(), moved_key.view());
    problem.query = moved_query.view();
    problem.key = moved_key.view();
  }
  problem.blocks = blocks;
  const PreparedLayer<T>& weights = model_.layer(layer);
  const std::optional<double> offset = problem.normalizer->offset_of_learned();
  if (offset && weights.score_scale) {
    if (moved_query.rows() == 0) moved_query = Matrix<T>::copy(problem.query);
    scale_queries<T>(weights.score_scale.view, *offset, blocks, keys, moved_query.view());
    problem.query = moved_query.view();
    problem.normalizer = nn::find_normalizer("softmax");
  }
  problem.bf16 = model_.precision == kernel::Precision::kBf16;
  const bool mean = override_of(layer) == AttentionOverride::kMean;
  if (mean) {
    // Queries of zeros give every key the same score; without Λ each head of values needs one.
    if (heads.value_heads > 0) {
      problem.num_heads = problem.num_key_value_heads = heads.value_heads;
      moved_key = Matrix<T>::zero(keys, heads.value_heads);
      problem.key = moved_key.view();
    }
    moved_query =
        Matrix<T>::zero(queries, heads.value_heads > 0 ? heads.value_heads : problem.query.columns);
    problem.query = moved_query.view();
    problem.bias = nullptr;
    problem.normalizer = nn::find_normalizer("softmax");
  }
  nn::WeightsVisitor<T> visit;
  Matrix<T> log_divisors;
  Matrix<T> scores;
  std::vector<std::vector<Index>> visible;  // one for all heads, or one a head
  if (request_.attentions && observer_ != nullptr && stream.kind != StreamKind::kQuery) {
    if (request_.attention_rows) {
      log_divisors = Matrix<T>(heads.heads, queries);
      if (request_.attention_scores) scores = Matrix<T>(heads.heads * queries, keys);
      const Index most = mean ? 0 : design_.variants.largest_keys;
      const Index different = blocks == nullptr ? 1 : std::max<Index>(blocks->heads(), 1);
      for (Index head = 0; head < different; ++head) {
        visible.push_back(visible_of(mask::blocks_of_head(blocks, head), queries, keys));
        for (Index& count : visible.back()) count = most > 0 ? std::min(count, most) : count;
      }
    }
    problem.log_divisors = log_divisors.view();
    problem.scores = scores.view();
    visit = [&, number = chunk_.first_sequence + sequence](Index head, MatrixView<const T> seen) {
      if (request_.attention_rows) {
        const std::size_t own = visible.size() == 1 ? 0 : static_cast<std::size_t>(head);
        AttentionRows<T> rows{log_divisors.view().row_span(head), visible[own], {}};
        if (!problem.scores.empty())
          rows.scores = problem.scores.middle_rows(head * queries, queries);
        observer_->attention_rows(number, layer, head, rows);
      }
      note_overflow(seen);
      observer_->attention(number, layer, head, seen);
    };
  }
  const MatrixView<T> out = context.middle_rows(stream.begin(sequence), queries);
  if (model_.materialized_attention && !mean) {
    return attend_materialized(layer, stream, sequence, problem, terms.get(), out, visit);
  }
  // With a cache the others of a text's rows were evaluated before: rounding differs anyway.
  if (cache_ != nullptr && !visit && nn::fits_row_attention(problem))
    return nn::row_attention(problem, out);
  nn::choose_evaluation(queries, keys, blocks).forward(problem, out, visit);
}

template <class T>
void Pass<T>::attend_materialized(Index layer, const StreamRows& stream, Index sequence,
                                  const nn::AttentionProblem<T>& problem,
                                  nn::PositionTerms<T>* terms, MatrixView<T> context,
                                  const nn::WeightsVisitor<T>& visit) {
  const PreparedLayer<T>& weights = model_.layer(layer);
  std::vector<Matrix<T>>& before = previous_.at(stream.kind)[static_cast<std::size_t>(sequence)];
  std::vector<MatrixView<const T>> previous;
  previous.reserve(before.size());
  for (const Matrix<T>& scores : before) previous.push_back(scores.view());
  nn::MaterializedSaved<T> saved;
  nn::materialized_attention_forward<T>(
      materialized_attention<T>(design_, problem, weights.talking_before.view,
                                weights.talking_after.view, previous, terms),
      context, &saved);
  for (std::size_t head = 0; visit && head < saved.weights.size(); ++head)
    visit(static_cast<Index>(head), saved.weights[head].view());
  if (design_.variants.previous_scores != PreviousScores::kNone) before = std::move(saved.scores);
}

template <class T>
void Pass<T>::attend(Index layer, const Stream& stream, const Stream& /*source*/,
                     const HeadSizes& heads, const Projected<T>& projected, MatrixView<T> context) {
  const StreamRows& own = stream;
  const StreamRows& queries = cache_ != nullptr ? std::as_const(added_) : own;
  const auto& maps = blocks(layer, queries);
  previous_[stream.kind].resize(static_cast<std::size_t>(stream.sequences()));
  const auto work = [&](Index s) {
    if (cache_ != nullptr) {
      const Index first = stream.begin(s), count = stream.count(s);
      cache_->put(layer, chunk_.first_sequence + s, projected.key.middle_rows(first, count),
                  projected.value.middle_rows(first, count));
    }
    attend_sequence(layer, queries, heads, projected, s, maps[static_cast<std::size_t>(s)].get(),
                    context);
  };
  // A few long sequences are split inside, by heads.
  if (stream.sequences() >= Index{2} * kernel::threads()) {
    kernel::parallel_items(stream.sequences(), work);
  } else {
    for (Index s = 0; s < stream.sequences(); ++s) work(s);
  }
}

#define MASQUE_INSTANTIATE(T)                                                          \
  template const std::vector<std::shared_ptr<const mask::BlockMap>>& Pass<T>::blocks(  \
      Index, const StreamRows&);                                                       \
  template void Pass<T>::attend(Index, const Stream&, const Stream&, const HeadSizes&, \
                                const Projected<T>&, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::model
