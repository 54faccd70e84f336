#include "train/network/layer_magnitudes.hpp"

#include <cmath>

#include "kernel/optimizer.hpp"

namespace masque::train {

namespace {

/// Σ x²
template <class T>
double squares(const Matrix<T>& x) {
  const MatrixView<const T> view = x.view();
  double sum = 0;
  for (Index i = 0; i < view.rows; ++i) sum += kernel::sum_of_squares<T>(view.row_span(i));
  return sum;
}

/// Σ (sum − scale · residual)²
template <class T>
double squares_of_branch(const Matrix<T>& sum, double scale, const Matrix<T>& residual) {
  double total = 0;
  for (Index i = 0; i < sum.rows(); ++i) {
    const auto whole = sum.view().row_span(i);
    const auto own = residual.view().row_span(i);
    for (std::size_t j = 0; j < whole.size(); ++j) {
      const double branch = static_cast<double>(whole[j]) - scale * static_cast<double>(own[j]);
      total += branch * branch;
    }
  }
  return total;
}

}  // namespace

double LayerMagnitudes::root_mean_square(double sum) const {
  return numbers > 0 ? std::sqrt(sum / numbers) : 0;
}

template <class T>
void add_magnitudes(const model::Design& design, const Tape<T>& tape,
                    std::span<LayerMagnitudes> layers) {
  const bool queries = design.streams != model::Streams::kOne;
  const bool post = design.norm_placement == model::NormPlacement::kPost;
  const bool parallel = design.norm_placement == model::NormPlacement::kParallel;
  const double alpha = design.variants.residual_scale;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    // Of one stream the last layer has the wanted rows in a stream of their own.
    const bool apart = tape.split && (queries || l + 1 == layers.size());
    const StreamTape<T>& stream = apart ? tape.selected : tape.content;
    const Matrix<T>& x = stream.x[l];
    const Matrix<T>& y = stream.x[l + 1];
    const LayerTape<T>& own = stream.layers[l];
    LayerMagnitudes& to = layers[l];
    to.numbers += static_cast<double>(y.rows() * y.columns());
    to.state += squares(y);
    if (design.layer_kind == model::LayerKind::kGatedAttention) {
      to.attention_norm_input += squares(post ? own.sum : x);
      to.attention_branch +=
          post ? squares_of_branch(own.sum, alpha, x) : squares_of_branch(y, 1, x);
      continue;
    }
    to.attention_branch += squares_of_branch(own.sum, post ? alpha : 1, x);
    to.feed_forward_branch += post ? squares_of_branch(own.last_sum, alpha, own.middle)
                                   : squares_of_branch(y, 1, own.sum);
    to.attention_norm_input += squares(post ? own.sum : x);
    to.feed_forward_norm_input += squares(post ? own.last_sum : parallel ? x : own.sum);
  }
}

template void add_magnitudes<float>(const model::Design&, const Tape<float>&,
                                    std::span<LayerMagnitudes>);
template void add_magnitudes<double>(const model::Design&, const Tape<double>&,
                                     std::span<LayerMagnitudes>);

}  // namespace masque::train
