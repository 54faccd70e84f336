// Dense layers on one input, as one product.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "kernel/product/trained_linear.hpp"
#include "train/network/parameters.hpp"

namespace masque::train {

/// Weights (and biases, if any) of some places, stacked. T as of Encoder.
template <class T>
class Dense {
 public:
  Dense() = default;
  /// For the weights of `roles` in `layer`, at the places `map` of `parameters`, which must stay,
  /// in this order, with `part` of roles that have several; roles without a weight are left out.
  /// Without any of the weights it is empty. Products are in `precision`.
  Dense(Parameters<T>& parameters, const ParameterMap& map,
        std::initializer_list<model::Role> roles, Index layer, kernel::Precision precision,
        Index part = 0);

  /// Whether there is no weight.
  bool empty() const { return parts_.empty(); }
  /// Number of outputs of all weights together.
  Index outputs() const { return outputs_; }
  /// Numbers in its weights.
  Index size() const;
  /// Packs into `room`, which others share, at each product instead of once a step: the same bits
  /// from less memory, for a pass over the weights at each. For one thread.
  void share(const std::shared_ptr<kernel::TrainedLinear<T>>& room) { room_ = room; }
  /// Packs the values: to be called before the first product and after every change of the values.
  void prepare();
  /// `y` `[rows, outputs()]` ← W x + b for each row of `x` `[rows, inputs]`.
  void forward(MatrixView<const T> x, MatrixView<T> y) const;
  /// From `d_y`, the gradient by what forward() made of `x`: gradients of weights and biases that
  /// are trained are added; `d_x` (without data: not wanted) is added to with `add`, else filled.
  /// Not for `std::complex<double>`.
  void backward(MatrixView<const T> x, MatrixView<const T> d_y, bool add, MatrixView<T> d_x) const;

 private:
  struct Part {
    Index weight = ParameterMap::kNone;
    Index bias = ParameterMap::kNone;
  };
  void pack(kernel::TrainedLinear<T>& into, kernel::Packed packed) const;

  Parameters<T>* parameters_ = nullptr;
  std::vector<Part> parts_;
  Index outputs_ = 0;
  std::vector<T> bias_;
  kernel::Precision precision_ = kernel::Precision::kF32;
  kernel::TrainedLinear<T> packed_;  ///< empty with room_
  std::shared_ptr<kernel::TrainedLinear<T>> room_;
};

}  // namespace masque::train
