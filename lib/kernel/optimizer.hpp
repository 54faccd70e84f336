// Steps of optimizers, and what clipping needs. T is float or double.
//
// Loops are split over threads in blocks of fixed size, whose sums are added in their order: the
// same bits for any number of threads. Nothing allocates but the first call of a thread.
#pragma once

#include <cstdint>
#include <span>

namespace masque::kernel {

struct OptimizerSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::int64_t step = 1;      ///< of this update, from 1
  double gradient_scale = 1;  ///< multiplies gradients before all else, for clipping
};

/// One tensor of parameters with its state; all spans have the same size. `first` and `second` are
/// running means of the gradient and of its square, zero before step 1.
template <class T>
struct OptimizedTensor {
  std::span<T> value;
  std::span<const T> gradient;
  std::span<T> first;
  std::span<T> second;
};

/// AdamW with decoupled weight decay and debiased moments, as torch.optim.AdamW: value ·= 1 − η λ,
/// then −= η m̂ / (√v̂ + ε). Loshchilov 2019, arXiv:1711.05101.
template <class T>
void adamw_update(const OptimizerSettings& settings, const OptimizedTensor<T>& tensor);

/// LAMB with debiased moments: value −= η r u with u = m̂ / (√v̂ + ε) + λ · value and the trust ratio
/// r = ‖value‖ / ‖u‖, or 1 where either is 0. Returns r. You 2020, arXiv:1904.00962.
template <class T>
double lamb_update(const OptimizerSettings& settings, const OptimizedTensor<T>& tensor);

/// Σ x², in double.
template <class T>
double sum_of_squares(std::span<const T> x);

/// x ·= factor
template <class T>
void scale(double factor, std::span<T> x);

}  // namespace masque::kernel
