// Dense layers on one input, as one product.
#pragma once

#include <initializer_list>
#include <vector>

#include "kernel/trained_linear.hpp"
#include "train/parameters.hpp"

namespace masque::train {

/// Weights (and biases, if any) of some places, stacked. T as of Encoder.
template <class T>
class Dense {
 public:
  Dense() = default;
  /// Without any of the weights it is empty.
  Dense(Parameters<T>& parameters, const Slots& slots, std::initializer_list<model::Role> roles,
        Index layer, kernel::Precision precision);

  bool empty() const { return parts_.empty(); }
  Index outputs() const { return packed_.outputs(); }
  /// After every change of the values.
  void prepare();
  void forward(MatrixView<const T> x, MatrixView<T> y) const { packed_.forward(x, bias_, y); }
  /// Gradients of weights and biases are added; d_x (without data: not wanted) is added to with
  /// `add`, else filled.
  void backward(MatrixView<const T> x, MatrixView<const T> d_y, bool add, MatrixView<T> d_x) const;

 private:
  struct Part {
    Index weight = Slots::kNone;
    Index bias = Slots::kNone;
  };
  Parameters<T>* parameters_ = nullptr;
  std::vector<Part> parts_;
  std::vector<T> bias_;
  kernel::Precision precision_ = kernel::Precision::kF32;
  kernel::TrainedLinear<T> packed_;
};

}  // namespace masque::train
