#include "kernel/optimizer_rows.hpp"

#include "base/processor/vectorize.hpp"

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

/// Adds the squares to lanes, which stay in registers for the whole run. n is a multiple of kLanes
/// in all calls but the last.
template <class T>
inline void add_squares(const T* x, Index n, LaneSums* kept) {
  LaneSums sums = *kept;
  const Index whole = n / kLanes * kLanes;
  for (Index i = 0; i < whole; i += kLanes) {
    for (Index j = 0; j < kLanes; ++j) sums.add(j, static_cast<double>(x[i + j]));
  }
  *kept = sums;
  for (Index i = whole; i < n; ++i) kept->add(i - whole, static_cast<double>(x[i]));
}

/// Updates the moments; the directions with decay.
template <class T>
inline void moments(const reference::StepFactors<T>& factors, const OptimizedRun<T>& run, Index n,
                    T* direction) {
  const reference::StepFactors<T> f = factors;
  const T* value = run.value;
  const T* gradient = run.gradient;
  T* first = run.first;
  T* second = run.second;
  MASQUE_INDEPENDENT
  for (Index i = 0; i < n; ++i) {
    direction[i] =
        reference::adam_direction(f, gradient[i], first[i], second[i]) + f.decay * value[i];
  }
}

/// Elements whose directions are made before their squares are added: loops of their own, since all
/// numbers of both do not fit into registers.
constexpr Index kDirections = 512;
static_assert(kDirections % kLanes == 0);

template <class T>
LambSums moments_and_sums(const reference::StepFactors<T>& f, const OptimizedRun<T>& run, Index n) {
  alignas(64) T direction[kDirections];
  LaneSums values, directions;
  for (Index i = 0; i < n; i += kDirections) {
    const Index count = n - i < kDirections ? n - i : kDirections;
    const OptimizedRun<T> part{run.value + i, run.gradient + i, run.first + i, run.second + i};
    vectorized<moments<T>>(f, part, count, direction);
    vectorized<add_squares<T>>(run.value + i, count, &values);
    vectorized<add_squares<T>>(direction, count, &directions);
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
double squares_of(const T* x, Index n) {
  LaneSums sums;
  vectorized<add_squares<T>>(x, n, &sums);
  return sums.total();
}

template <class T>
inline void multiply_run(T factor, Index n, T* x) {
  for (Index i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define MASQUE_LOOPS(T)                                                                            \
  void adamw_run(const reference::StepFactors<T>& f, const OptimizedRun<T>& run, Index n) {        \
    vectorized<adamw<T>>(f, run, n);                                                               \
  }                                                                                                \
  LambSums lamb_moments(const reference::StepFactors<T>& f, const OptimizedRun<T>& run, Index n) { \
    return moments_and_sums(f, run, n);                                                            \
  }                                                                                                \
  void lamb_run(const reference::StepFactors<T>& f, T rate, const OptimizedRun<T>& run, Index n) { \
    vectorized<lamb<T>>(f, rate, run, n);                                                          \
  }                                                                                                \
  double squares(const T* x, Index n) { return squares_of(x, n); }                                 \
  void scale_run(T factor, Index n, T* x) { vectorized<multiply_run<T>>(factor, n, x); }
// NOLINTEND(bugprone-macro-parentheses)
MASQUE_LOOPS(float)
MASQUE_LOOPS(double)
#undef MASQUE_LOOPS

}  // namespace masque::kernel
