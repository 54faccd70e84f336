// What inference computes of a layer in its own way: products for rows that repeat, keys and values
// that two streams share, mixers.
#include "kernel/parallel.hpp"
#include "model/pass.hpp"

namespace masque::model {
namespace {

// Rows that go through both products of a feed-forward layer before the next.
constexpr Index kPanelRows = 128;
constexpr Index kSharedPanelRows = 512;

}  // namespace

template <class T>
Index Pass<T>::panel_rows() const {
  return kernel::threads() > 1 ? kSharedPanelRows : kPanelRows;
}

template <class T>
void Pass<T>::project(const kernel::Linear<T>& linear, Index layer, const Stream& stream,
                      MatrixView<const T> x, MatrixView<T> y) const {
  if (layer == 0 && &stream == &content_ && repeats_.pay()) {
    repeats_.forward(linear, x, y);
  } else {
    linear.forward(x, y);
  }
}

template <class T>
Projected<T> Pass<T>::project(Index l, const Stream& stream, const Stream& source,
                              MatrixView<const T> input, MatrixView<const T> source_input) {
  const PreparedLayer<T>& weights = model_.layer(l);
  Projected<T> projected;
  projected.query = resized(memory_.projected, input.rows, weights.query.outputs());
  project(weights.query, l, stream, input, projected.query);
  projected.made = keys_layer_ != l;
  keys_layer_ = l;
  if (projected.made) {
    project(weights.key_value, l, source, source_input,
            resized(memory_.source_projected, source_input.rows, weights.key_value.outputs()));
  }
  const MatrixView<T> both = memory_.source_projected.view();
  const Index key_width = design_.num_key_value_heads * design_.head_size;
  projected.key = both.middle_columns(0, key_width);
  projected.value = both.middle_columns(key_width, both.columns - key_width);
  return projected;
}

template <class T>
void Pass<T>::project_distances(Index l, const Stream& /*stream*/) {
  // DeBERTa's are made when the weights are prepared.
  if (design_.position != PositionType::kXlnet) return;
  const kernel::Linear<T>& relative = model_.layer(l).relative;
  if (distances_.waves.rows() == 0)
    distances_ = xlnet_distances<T>(design_, content_.positions, content_.begins, model_.path);
  relative.forward(distances_.waves.view(),
                   resized(memory_.distance_keys, distances_.waves.rows(), relative.outputs()));
}

template <class T>
void Pass<T>::mix(Index l, const Stream& stream, MatrixView<const T> x, MatrixView<T> context) {
  const auto& maps = blocks(l, stream);
  nn::MixerProblem<T> problem;
  problem.shape = model_.mixer_shape;
  problem.parameters = model_.layer(l).mixer.views;
  for (Index s = 0; s < stream.sequences(); ++s) {
    if (stream.count(s) == 0) continue;
    problem.x = x.middle_rows(stream.begin(s), stream.count(s));
    problem.blocks = maps[static_cast<std::size_t>(s)].get();
    model_.mixer->forward(problem, context.middle_rows(stream.begin(s), stream.count(s)));
  }
}

template <class T>
std::unique_ptr<nn::PositionTerms<T>> Pass<T>::input_terms(const Stream& stream,
                                                           Index sequence) const {
  nn::PositionProblem<T> problem;
  problem.shape = model_.scheme_shape;
  problem.parameters = model_.shared_position.views;
  const auto where = of_sequence(stream.positions, stream.begins, sequence);
  problem.positions = {where, where};
  return model_.scheme->terms(problem);
}

#define MASQUE_INSTANTIATE(T)                                                                      \
  template Index Pass<T>::panel_rows() const;                                                      \
  template Projected<T> Pass<T>::project(Index, const Stream&, const Stream&, MatrixView<const T>, \
                                         MatrixView<const T>);                                     \
  template void Pass<T>::project_distances(Index, const Stream&);                                  \
  template void Pass<T>::mix(Index, const Stream&, MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE
template std::unique_ptr<nn::PositionTerms<float>> Pass<float>::input_terms(const Stream&,
                                                                            Index) const;
template std::unique_ptr<nn::PositionTerms<double>> Pass<double>::input_terms(const Stream&,
                                                                              Index) const;

}  // namespace masque::model
