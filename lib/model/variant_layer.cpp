// What only the variants of the zoo do in a layer: position schemes of nn, attention with
// everything between scores and context, mixers.
#include <utility>

#include "model/pass.hpp"
#include "nn/materialized_attention.hpp"

namespace masque::model {
namespace {

template <class T>
std::vector<MatrixView<const T>> views_of(const std::vector<Matrix<T>>& matrices) {
  std::vector<MatrixView<const T>> views;
  views.reserve(matrices.size());
  for (const Matrix<T>& matrix : matrices) views.push_back(matrix.view());
  return views;
}

}  // namespace

template <class T>
void Pass<T>::act_on_input(const Stream<T>& stream, MatrixView<T> x) const {
  nn::PositionProblem<T> problem;
  problem.shape = model_.scheme_shape;
  problem.parameters = model_.shared_position.views;
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    const auto where = of_sequence(stream.positions, stream.begins, s);
    if (where.empty()) continue;
    problem.places = {where, where};
    const auto rows = x.middle_rows(stream.begins[static_cast<std::size_t>(s)], std::ssize(where));
    model_.scheme->terms(problem)->input(rows);
  }
}

template <class T>
void Pass<T>::attend_general(Index layer, const Stream<T>& stream, Index sequence,
                             const nn::AttentionProblem<T>& problem, nn::PositionTerms<T>* terms,
                             MatrixView<T> context, const nn::WeightsVisitor<T>& visit) {
  const PreparedLayer<T>& weights = model_.layer(layer);
  const PreviousScores previous = design_.variants.previous_scores;
  std::vector<Matrix<T>>& before = previous_.at(stream.kind)[static_cast<std::size_t>(sequence)];
  const std::vector<MatrixView<const T>> scores = views_of(before);
  nn::MaterializedAttention<T> general;
  general.problem = problem;
  general.problem.bf16 = false;
  general.talking_before = weights.talking_before.view;
  general.talking_after = weights.talking_after.view;
  general.previous = scores;
  general.pass_own_scores = previous == PreviousScores::kOneLayer;
  if (terms != nullptr) {
    general.weight_terms = terms->weight_terms();
    general.value_terms = terms->value_terms();
  }
  nn::GeneralSaved<T> saved;
  nn::materialized_attention_forward(general, context, &saved);
  if (visit) {
    for (std::size_t head = 0; head < saved.weights.size(); ++head) {
      visit(static_cast<Index>(head), saved.weights[head].view());
    }
  }
  if (previous != PreviousScores::kNone) before = std::move(saved.scores);
}

template <class T>
void Pass<T>::mix(Index layer, const Stream<T>& stream, MatrixView<const T> x) {
  const auto& maps = blocks(layer, stream);
  scratch_.context.resize(x.rows, x.columns);
  nn::MixerProblem<T> problem;
  problem.shape = model_.mixer_shape;
  problem.parameters = model_.layer(layer).mixer.views;
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    const Index begin = stream.begins[static_cast<std::size_t>(s)];
    const Index length = stream.begins[static_cast<std::size_t>(s) + 1] - begin;
    if (length == 0) continue;
    problem.x = x.middle_rows(begin, length);
    problem.blocks = maps[static_cast<std::size_t>(s)].get();
    model_.mixer->forward(problem, scratch_.context.view().middle_rows(begin, length));
  }
}

template <class T>
bool Pass<T>::needs_all_rows() const {
  return model_.mixer != nullptr || design_.variants.previous_scores != PreviousScores::kNone;
}

template <class T>
void Pass<T>::scale_residual(MatrixView<T> x) const {
  if (design_.variants.residual_scale == 1) return;
  const auto alpha = static_cast<T>(design_.variants.residual_scale);
  for (Index i = 0; i < x.rows; ++i) {
    for (T& value : x.row_span(i)) value *= alpha;
  }
}

template void Pass<float>::act_on_input(const Stream<float>&, MatrixView<float>) const;
template void Pass<float>::attend_general(Index, const Stream<float>&, Index,
                                          const nn::AttentionProblem<float>&,
                                          nn::PositionTerms<float>*, MatrixView<float>,
                                          const nn::WeightsVisitor<float>&);
template void Pass<float>::mix(Index, const Stream<float>&, MatrixView<const float>);
template bool Pass<float>::needs_all_rows() const;
template void Pass<float>::scale_residual(MatrixView<float>) const;
template void Pass<double>::act_on_input(const Stream<double>&, MatrixView<double>) const;
template void Pass<double>::attend_general(Index, const Stream<double>&, Index,
                                           const nn::AttentionProblem<double>&,
                                           nn::PositionTerms<double>*, MatrixView<double>,
                                           const nn::WeightsVisitor<double>&);
template void Pass<double>::mix(Index, const Stream<double>&, MatrixView<const double>);
template bool Pass<double>::needs_all_rows() const;
template void Pass<double>::scale_residual(MatrixView<double>) const;

}  // namespace masque::model
