// Loops of the optimizers over a run of elements.
#pragma once

#include "base/types.hpp"
#include "kernel/optimizer_reference.hpp"

namespace masque::kernel {

/// Where a run begins in the spans of a tensor.
template <class T>
struct OptimizedRun {
  T* value;
  const T* gradient;
  T* first;
  T* second;
};

/// Squares of the numbers of a run, and of their directions.
struct LambSums {
  double values = 0;
  double directions = 0;
};

void adamw_run(const reference::StepFactors<float>& f, const OptimizedRun<float>& run, Index n);
void adamw_run(const reference::StepFactors<double>& f, const OptimizedRun<double>& run, Index n);

/// The moments, and the sums that the trust ratio needs.
LambSums lamb_moments(const reference::StepFactors<float>& f, const OptimizedRun<float>& run,
                      Index n);
LambSums lamb_moments(const reference::StepFactors<double>& f, const OptimizedRun<double>& run,
                      Index n);

/// value −= rate · direction, from the moments.
void lamb_run(const reference::StepFactors<float>& f, float rate, const OptimizedRun<float>& run,
              Index n);
void lamb_run(const reference::StepFactors<double>& f, double rate, const OptimizedRun<double>& run,
              Index n);

/// Σ x² in sixteen lanes of double.
double squares(const float* x, Index n);
double squares(const double* x, Index n);

void scale_run(float factor, Index n, float* x);
void scale_run(double factor, Index n, double* x);

}  // namespace masque::kernel
