#include "kernel/optimizer_rows.hpp"

#include "base/vectorize.hpp"

namespace masque::kernel {
namespace {

constexpr Index kLanes = 16;

/// Sums in lanes, in a fixed order.
struct LaneSums {
  [[gnu::always_inline]] void add(Index lane, double x) { lanes[lane] += x * x; }
  double total() const {
    double result = 0;
    for (const double x : lanes) result += x;
    return result;
  }
  double lanes[kLanes] = {};
};

template <class T>
inline void adamw(const reference::StepFactors<T>& factors, const OptimizedRun<T>& run, Index n) {
  const reference::StepFactors<T> f = factors;
  T* value = run.value;
  const T* gradient = run.gradient;
  T* first = run.first;
  T* second = run.second;
  MASQUE_INDEPENDENT
  for (Index i = 0; i < n; ++i) {
    const T direction = reference::adam_direction(f, gradient[i], first[i], second[i]);
    value[i] = value[i] * f.kept - f.rate * direction;
  }
}

template <class T>
inline LambSums moments(const reference::StepFactors<T>& factors, const OptimizedRun<T>& run,
                        Index n) {
  const reference::StepFactors<T> f = factors;
  LaneSums values, directions;
  for (Index i = 0; i < n; i += kLanes) {
    const Index count = n - i < kLanes ? n - i : kLanes;
    T direction[kLanes];
    for (Index j = 0; j < count; ++j) {
      direction[j] =
          reference::adam_direction(f, run.gradient[i + j], run.first[i + j], run.second[i + j]) +
          f.decay * run.value[i + j];
    }
    for (Index j = 0; j < count; ++j) {
      values.add(j, static_cast<double>(run.value[i + j]));
      directions.add(j, static_cast<double>(direction[j]));
    }
  }
  return {values.total(), directions.total()};
}

template <class T>
inline void lamb(const reference::StepFactors<T>& factors, T rate, const OptimizedRun<T>& run,
                 Index n) {
  const reference::StepFactors<T> f = factors;
  T* value = run.value;
  const T* first = run.first;
  const T* second = run.second;
  MASQUE_INDEPENDENT
  for (Index i = 0; i < n; ++i) {
    const T direction = reference::adam_direction<T>(f, first[i], second[i]) + f.decay * value[i];
    value[i] -= rate * direction;
  }
}

template <class T>
inline double squares_of(const T* x, Index n) {
  LaneSums sums;
  const Index whole = n / kLanes * kLanes;
  for (Index i = 0; i < whole; i += kLanes) {
    for (Index j = 0; j < kLanes; ++j) sums.add(j, static_cast<double>(x[i + j]));
  }
  for (Index i = whole; i < n; ++i) sums.add(i - whole, static_cast<double>(x[i]));
  return sums.total();
}

template <class T>
inline void multiply_run(T factor, Index n, T* x) {
  for (Index i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace

#define MASQUE_LOOPS(T)                                                                            \
  void adamw_run(const reference::StepFactors<T>& f, const OptimizedRun<T>& run, Index n) {        \
    vectorized<adamw<T>>(f, run, n);                                                               \
  }                                                                                                \
  LambSums lamb_moments(const reference::StepFactors<T>& f, const OptimizedRun<T>& run, Index n) { \
    return vectorized<moments<T>>(f, run, n);                                                      \
  }                                                                                                \
  void lamb_run(const reference::StepFactors<T>& f, T rate, const OptimizedRun<T>& run, Index n) { \
    vectorized<lamb<T>>(f, rate, run, n);                                                          \
  }                                                                                                \
  double squares(const T* x, Index n) { return vectorized<squares_of<T>>(x, n); }                  \
  void scale_run(T factor, Index n, T* x) { vectorized<multiply_run<T>>(factor, n, x); }
MASQUE_LOOPS(float)
MASQUE_LOOPS(double)
#undef MASQUE_LOOPS

}  // namespace masque::kernel
