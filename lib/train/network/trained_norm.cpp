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
std::span<const T> TrainedNorm<T>::weights(std::vector<T>& shifted) const {
  const std::span<const T> stored = value(weight_);
  if (design_.weight_offset == 0) return stored;
  shifted.assign(stored.begin(), stored.end());
  for (T& weight : shifted) weight += static_cast<T>(design_.weight_offset);
  return shifted;
}

namespace {

/// The `columns` elements of `all` from `first` on; of nothing nothing.
template <class T>
std::span<T> some_of(std::span<T> all, Index first, Index columns) {
  if (all.empty()) return all;
  return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(columns));
}

}  // namespace

template <class T>
void TrainedNorm<T>::forward(MatrixView<const T> x, MatrixView<T> y) const {
  forward_columns(0, x, y);
}

template <class T>
void TrainedNorm<T>::forward_columns(Index first, MatrixView<const T> x, MatrixView<T> y) const {
  std::vector<T> shifted;
  kernel::norm_forward<T>(design_.kind, x, some_of(weights(shifted), first, x.columns),
                          some_of(value(bias_), first, x.columns), design_.epsilon, y);
}

template <class T>
void TrainedNorm<T>::residual_forward(MatrixView<const T> x, MatrixView<const T> branch,
                                      MatrixView<T> sum, MatrixView<T> y) const {
  std::vector<T> shifted;
  kernel::residual_norm_forward<T>(design_.kind, x, branch, weights(shifted), value(bias_),
                                   design_.epsilon, sum, y);
}

template <class T>
void TrainedNorm<T>::backward(MatrixView<const T> x, MatrixView<const T> d_y,
                              MatrixView<T> d_x) const {
  backward_columns(0, x, d_y, d_x);
}

template <class T>
void TrainedNorm<T>::backward_columns(Index first, MatrixView<const T> x, MatrixView<const T> d_y,
                                      MatrixView<T> d_x) const {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    std::vector<T> shifted;
    kernel::norm_backward<T>(
        design_.kind, x, some_of(weights(shifted), first, x.columns), design_.epsilon, d_y, d_x,
        some_of(gradient(weight_), first, x.columns), some_of(gradient(bias_), first, x.columns));
  } else {
    MASQUE_CHECK(false);
  }
}

template class TrainedNorm<float>;
template class TrainedNorm<double>;
template class TrainedNorm<std::complex<double>>;

}  // namespace masque::train
