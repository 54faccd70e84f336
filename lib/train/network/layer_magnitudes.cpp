#include "train/network/layer_magnitudes.hpp"

#include <cmath>

#include "kernel/optimizer.hpp"
#include "model/variants.hpp"

namespace masque::train {

namespace {

/// Σ x²
template <class T>
double squares(MatrixView<const T> x) {
  double sum = 0;
  for (Index i = 0; i < x.rows; ++i) sum += kernel::sum_of_squares<T>(x.row_span(i));
  return sum;
}

/// Σ (sum − scale · ω ⊙ residual)²; ω without data: 1.
template <class T>
double squares_of_branch(MatrixView<const T> sum, double scale, MatrixView<const T> weights,
                         MatrixView<const T> residual) {
  double total = 0;
  for (Index i = 0; i < sum.rows; ++i) {
    const auto whole = sum.row_span(i);
    const auto own = residual.row_span(i);
    for (std::size_t j = 0; j < whole.size(); ++j) {
      double part = scale * static_cast<double>(own[j]);
      if (weights.data != nullptr)
        part *= static_cast<double>(weights.at(0, static_cast<Index>(j)));
      const double branch = static_cast<double>(whole[j]) - part;
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
void add_magnitudes(const model::Design& design, Index l, const ResidualWeights<T>& weights,
                    MatrixView<const T> x, MatrixView<const T> y, const model::LayerMemory<T>& own,
                    LayerMagnitudes& to) {
  const bool post = norms_sum(design.norm_placement);
  const bool parallel = is_parallel(design.norm_placement);
  const double alpha = design.variants.residual_scale;
  const double first_alpha = model::residual_scale(design, l);
  const MatrixView<const T> sum = own.sum.view();
  to.numbers += static_cast<double>(y.rows * y.columns);
  to.state += squares<T>(y);
  if (design.layer_kind == model::LayerKind::kGatedAttention) {
    to.attention_norm_input += squares<T>(post ? sum : x);
    to.attention_branch += squares_of_branch<T>(post ? sum : y, first_alpha, weights.attention, x);
    return;
  }
  const MatrixView<const T> last_sum = own.last_sum.view();
  to.attention_branch += squares_of_branch<T>(sum, first_alpha, weights.attention, x);
  to.feed_forward_branch +=
      post ? squares_of_branch<T>(last_sum, alpha, weights.feed_forward, own.middle.view())
           : squares_of_branch<T>(y, 1, {}, sum);
  if (!has_attention_norm(design.norm_placement)) return;
  to.attention_norm_input += squares<T>(post ? sum : x);
  to.feed_forward_norm_input += squares<T>(post ? last_sum : parallel ? x : sum);
}

#define MASQUE_INSTANTIATE(T)                                                             \
  template void add_magnitudes<T>(const model::Design&, Index, const ResidualWeights<T>&, \
                                  MatrixView<const T>, MatrixView<const T>,               \
                                  const model::LayerMemory<T>&, LayerMagnitudes&);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::train
