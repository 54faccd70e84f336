#include "train/network/dense.hpp"

#include <algorithm>
#include <complex>

#include "base/error.hpp"

namespace masque::train {

template <class T>
Dense<T>::Dense(Parameters<T>& parameters, const ParameterMap& map,
                std::initializer_list<model::Role> roles, Index layer, kernel::Precision precision,
                Index part)
    : parameters_(&parameters), precision_(precision) {
  bool biased = false;
  for (const model::Role role : roles) {
    const Index weight = map.weight(role, layer, part);
    if (weight == ParameterMap::kNone) continue;
    parts_.push_back({weight, map.bias(role, layer, part)});
    biased = biased || parts_.back().bias != ParameterMap::kNone;
    outputs_ += parameters[weight].rows;
  }
  if (biased) bias_.assign(static_cast<std::size_t>(outputs_), T{});
}

template <class T>
Index Dense<T>::size() const {
  Index size = 0;
  for (const Part& part : parts_) size += (*parameters_)[part.weight].size();
  return size;
}

template <class T>
void Dense<T>::pack(kernel::TrainedLinear<T>& into, kernel::Packed packed) const {
  std::vector<MatrixView<const T>> weights;
  weights.reserve(parts_.size());
  for (const Part& part : parts_) weights.push_back(parameters_->value(part.weight));
  into.pack(weights, precision_, packed);
}

template <class T>
void Dense<T>::prepare() {
  if (empty()) return;
  std::size_t first = 0;
  for (const Part& part : parts_) {
    if (part.bias != ParameterMap::kNone) {
      const MatrixView<T> own = parameters_->value(part.bias);
      std::copy_n(own.data, own.columns, bias_.data() + first);
    }
    first += static_cast<std::size_t>((*parameters_)[part.weight].rows);
  }
  if (room_ == nullptr) pack(packed_, kernel::Packed::kBoth);
}

template <class T>
void Dense<T>::forward(MatrixView<const T> x, MatrixView<T> y) const {
  if (room_ != nullptr) pack(*room_, kernel::Packed::kForward);
  (room_ != nullptr ? *room_ : packed_).forward(x, bias_, y);
}

template <class T>
void Dense<T>::backward(MatrixView<const T> x, MatrixView<const T> d_y, bool add,
                        MatrixView<T> d_x) const {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    Index first = 0;
    for (const Part& part : parts_) {
      const Index rows = (*parameters_)[part.weight].rows;
      const std::span<T> bias = part.bias == ParameterMap::kNone
                                    ? std::span<T>()
                                    : parameters_->gradient(part.bias).row_span(0);
      kernel::add_weight_gradient<T>(x, d_y.middle_columns(first, rows), precision_,
                                     parameters_->gradient(part.weight), bias);
      first += rows;
    }
    if (d_x.data == nullptr) return;
    if (room_ != nullptr) pack(*room_, kernel::Packed::kBackward);
    (room_ != nullptr ? *room_ : packed_).backward(d_y, add, d_x);
  } else {
    MASQUE_CHECK(false);
  }
}

template class Dense<float>;
template class Dense<double>;
template class Dense<std::complex<double>>;

}  // namespace masque::train
