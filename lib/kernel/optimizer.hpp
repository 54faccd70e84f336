// Steps of optimizers, and what clipping needs. T is float or double.
//
// Loops are split over threads in blocks of fixed size, whose sums are added in their order: the
// same bits for any number of threads. Nothing allocates but the first call of a thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.hpp"

namespace masque::kernel {

/// Settings of one update, for adamw_update and lamb_update.
struct OptimizerSettings {
  double learning_rate = 1e-3;  ///< η
  double beta1 = 0.9;           ///< decay of the running mean of gradients
  double beta2 = 0.999;         ///< decay of the running mean of their squares
  double epsilon = 1e-8;        ///< ε, added to the root of the second moment
  double weight_decay = 0;      ///< λ, decoupled from the gradient
  std::int64_t step = 1;        ///< of this update, from 1
  double gradient_scale = 1;    ///< multiplies gradients before all else, for clipping
};

/// One tensor of parameters with its state; all spans have the same size. Borrowed.
template <class T>
struct OptimizedTensor {
  std::span<T> value;           ///< parameters, updated
  std::span<const T> gradient;  ///< gradient of the loss
  std::span<T> first;           ///< running mean of the gradient; zero before step 1
  std::span<T> second;          ///< running mean of its square; zero before step 1
};

/// Updates `tensor` by AdamW with decoupled weight decay and debiased moments, as
/// torch.optim.AdamW, with `settings`: value ·= 1 − η λ, then −= η m̂ / (√v̂ + ε). Loshchilov and
/// Hutter 2019, arXiv:1711.05101.
template <class T>
void adamw_update(const OptimizerSettings& settings, const OptimizedTensor<T>& tensor);

/// Updates `tensor` by LAMB with debiased moments, with `settings`: value −= η r u with u = m̂ /
/// (√v̂ + ε) + λ · value and the trust ratio r = ‖value‖ / ‖u‖, or 1 where either is 0. Returns r.
/// You et al. 2020, arXiv:1904.00962.
template <class T>
double lamb_update(const OptimizerSettings& settings, const OptimizedTensor<T>& tensor);

/// Elements of which squares are summed before those of others.
inline constexpr Index kSquaresBlock = 16384;
/// Σ x² over `x`, in double: the sums of blocks_of_squares, added in their order.
template <class T>
double sum_of_squares(std::span<const T> x);
/// `sums`[b] ← Σ x² over block b of `x`, which is kSquaresBlock elements, the last one perhaps
/// less; there are as many `sums` as blocks.
template <class T>
void blocks_of_squares(std::span<const T> x, std::span<double> sums);

/// `x` ·= `factor`, rounded to T first.
template <class T>
void scale(double factor, std::span<T> x);

}  // namespace masque::kernel
