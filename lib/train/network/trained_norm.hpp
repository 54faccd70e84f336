// A norm whose weight and bias are trained.
#pragma once

#include <vector>

#include "model/design.hpp"
#include "train/network/parameters.hpp"

namespace masque::train {

/// The norm at one place of a model; T as of Encoder. Without a weight or bias there it has none.
template <class T>
class TrainedNorm {
 public:
  /// Not there.
  TrainedNorm() = default;
  /// The norm `design` of `role` in `layer`, with weight and bias at the places `map` of
  /// `parameters`, which must stay.
  TrainedNorm(Parameters<T>& parameters, const ParameterMap& map, model::Role role, Index layer,
              const model::NormDesign& design);

  /// Whether it was made with parameters; else nothing below may be called.
  bool present() const { return parameters_ != nullptr; }
  /// `y` = norm(`x`), row by row; y may be x.
  void forward(MatrixView<const T> x, MatrixView<T> y) const;
  /// `y` = norm(`x`) with the weights from element `first` on, as many as `x` has columns.
  void forward_columns(Index first, MatrixView<const T> x, MatrixView<T> y) const;
  /// `y` = norm(`x` + `branch`); y may be x. The sum goes to `sum`, if that has data.
  void residual_forward(MatrixView<const T> x, MatrixView<const T> branch, MatrixView<T> sum,
                        MatrixView<T> y) const;
  /// From `d_y`, the gradient by what forward() made of `x`: adds to `d_x`, and to the gradients of
  /// weight and bias that are trained. Not for `std::complex<double>`.
  void backward(MatrixView<const T> x, MatrixView<const T> d_y, MatrixView<T> d_x) const;
  /// The same for forward_columns() with `first`, `x`, `d_y` and `d_x`.
  void backward_columns(Index first, MatrixView<const T> x, MatrixView<const T> d_y,
                        MatrixView<T> d_x) const;

 private:
  /// The weights as the norm takes them: with NormDesign::weight_offset in the memory `shifted`.
  std::span<const T> weights(std::vector<T>& shifted) const;
  std::span<const T> value(Index parameter) const;
  std::span<T> gradient(Index parameter) const;

  Parameters<T>* parameters_ = nullptr;
  Index weight_ = ParameterMap::kNone;
  Index bias_ = ParameterMap::kNone;
  model::NormDesign design_;
};

}  // namespace masque::train
