// Loops of the optimizers over a run of elements.
#pragma once

#include "base/types.hpp"
#include "kernel/optimizer_reference.hpp"

namespace masque::kernel {

/// Where a run of elements begins in the spans of an OptimizedTensor. Borrowed.
template <class T>
struct OptimizedRun {
  T* value;           ///< parameters
  const T* gradient;  ///< their gradients
  T* first;           ///< running means of gradients
  T* second;          ///< running means of their squares
};

/// What the trust ratio of LAMB needs from a run.
struct LambSums {
  double values = 0;      ///< Σ value²
  double directions = 0;  ///< Σ direction², with weight decay
};

/// AdamW's update of the `n` elements of `run`, with the factors `f` of the step.
void adamw_run(const reference::StepFactors<float>& f, const OptimizedRun<float>& run, Index n);
void adamw_run(const reference::StepFactors<double>& f, const OptimizedRun<double>& run, Index n);

/// Updates the moments of the `n` elements of `run` with the factors `f` of the step; returns the
/// sums that the trust ratio needs. Leaves the values as they are.
LambSums lamb_moments(const reference::StepFactors<float>& f, const OptimizedRun<float>& run,
                      Index n);
LambSums lamb_moments(const reference::StepFactors<double>& f, const OptimizedRun<double>& run,
                      Index n);

/// value −= `rate` · direction for the `n` elements of `run`, from moments that are up to date; `f`
/// has the factors of the step.
void lamb_run(const reference::StepFactors<float>& f, float rate, const OptimizedRun<float>& run,
              Index n);
void lamb_run(const reference::StepFactors<double>& f, double rate, const OptimizedRun<double>& run,
              Index n);

/// Σ x² over `n` numbers of `x`, in sixteen lanes of double.
double squares(const float* x, Index n);
double squares(const double* x, Index n);

/// `x` ·= `factor`, `n` numbers.
void scale_run(float factor, Index n, float* x);
void scale_run(double factor, Index n, double* x);

}  // namespace masque::kernel
