#include "train/network/trained_norm.hpp"

#include <complex>

#include "base/error.hpp"
#include "kernel/norm.hpp"

namespace masque::train {

template <class T>
TrainedNorm<T>::TrainedNorm(Parameters<T>& parameters, const ParameterMap& map, model::Role role,
                            Index layer, const model::NormDesign& design)
    : parameters_(&parameters),
      weight_(map.weight(role, layer)),
      bias_(map.bias(role, layer)),
      design_(design) {}

template <class T>
std::span<const T> TrainedNorm<T>::value(Index parameter) const {
  if (parameter == ParameterMap::kNone) return {};
  return parameters_->value(parameter).row_span(0);
}

template <class T>
std::span<T> TrainedNorm<T>::gradient(Index parameter) const {
  if (parameter == ParameterMap::kNone) return {};
  const MatrixView<T> view = parameters_->gradient(parameter);
  return {view.data, static_cast<std::size_t>(view.columns)};
}

template <class T>
void TrainedNorm<T>::forward(MatrixView<const T> x, MatrixView<T> y) const {
  kernel::norm_forward<T>(design_.kind, x, value(weight_), value(bias_), design_.epsilon, y);
}

template <class T>
void TrainedNorm<T>::residual_forward(MatrixView<const T> x, MatrixView<const T> branch,
                                      MatrixView<T> sum, MatrixView<T> y) const {
  kernel::residual_norm_forward<T>(design_.kind, x, branch, value(weight_), value(bias_),
                                   design_.epsilon, sum, y);
}

template <class T>
void TrainedNorm<T>::backward(MatrixView<const T> x, MatrixView<const T> d_y,
                              MatrixView<T> d_x) const {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    kernel::norm_backward<T>(design_.kind, x, value(weight_), design_.epsilon, d_y, d_x,
                             gradient(weight_), gradient(bias_));
  } else {
    MASQUE_CHECK(false);
  }
}

template class TrainedNorm<float>;
template class TrainedNorm<double>;
template class TrainedNorm<std::complex<double>>;

}  // namespace masque::train
