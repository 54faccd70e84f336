#include "kernel/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/optimizer_rows.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

constexpr Index kBlock = kSquaresBlock;

/// Calls work(first, count, block) for all blocks of n elements, in parallel.
template <class Work>
void for_blocks(Index n, const Work& work) {
  parallel_ranges(divide_up(n, kBlock), 1, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
      work(b * kBlock, std::min(kBlock, n - b * kBlock), static_cast<std::size_t>(b));
    }
  });
}

std::size_t block_count(Index n) { return static_cast<std::size_t>(divide_up(n, kBlock)); }

template <class T>
Index checked_size(const OptimizedTensor<T>& t) {
  MASQUE_CHECK(t.gradient.size() == t.value.size());
  MASQUE_CHECK(t.first.size() == t.value.size() && t.second.size() == t.value.size());
  return static_cast<Index>(t.value.size());
}

template <class T>
OptimizedRun<T> run_at(const OptimizedTensor<T>& t, Index first) {
  return {t.value.data() + first, t.gradient.data() + first, t.first.data() + first,
          t.second.data() + first};
}

}  // namespace

template <class T>
void adamw_update(const OptimizerSettings& settings, const OptimizedTensor<T>& tensor) {
  MASQUE_CHECK(settings.step >= 1);
  const reference::StepFactors<T> factors(settings);
  for_blocks(checked_size(tensor), [&](Index first, Index count, std::size_t /*block*/) {
    adamw_run(factors, run_at(tensor, first), count);
  });
}

template <class T>
double lamb_update(const OptimizerSettings& settings, const OptimizedTensor<T>& tensor) {
  MASQUE_CHECK(settings.step >= 1);
  const reference::StepFactors<T> factors(settings);
  const Index n = checked_size(tensor);
  thread_local std::vector<LambSums> kept;
  std::vector<LambSums>& sums = kept;  // the caller's, on all threads
  sums.assign(block_count(n), {});
  for_blocks(n, [&](Index first, Index count, std::size_t block) {
    sums[block] = lamb_moments(factors, run_at(tensor, first), count);
  });
  LambSums whole;
  for (const LambSums& part : sums) {
    whole.values += part.values;
    whole.directions += part.directions;
  }
  const double ratio =
      whole.values > 0 && whole.directions > 0 ? std::sqrt(whole.values / whole.directions) : 1.0;
  const T rate = static_cast<T>(settings.learning_rate * ratio);
  for_blocks(n, [&](Index first, Index count, std::size_t /*block*/) {
    lamb_run(factors, rate, run_at(tensor, first), count);
  });
  return ratio;
}

template <class T>
void blocks_of_squares(std::span<const T> x, std::span<double> sums) {
  const auto n = static_cast<Index>(x.size());
  MASQUE_CHECK(sums.size() == block_count(n));
  for_blocks(n, [&](Index first, Index count, std::size_t block) {
    sums[block] = squares(x.data() + first, count);
  });
}

template <class T>
double sum_of_squares(std::span<const T> x) {
  thread_local std::vector<double> sums;
  sums.assign(block_count(static_cast<Index>(x.size())), 0);
  blocks_of_squares(x, std::span<double>(sums));
  double whole = 0;
  for (const double part : sums) whole += part;
  return whole;
}

template <class T>
void scale(double factor, std::span<T> x) {
  for_blocks(static_cast<Index>(x.size()), [&](Index first, Index count, std::size_t /*block*/) {
    scale_run(static_cast<T>(factor), count, x.data() + first);
  });
}

#define MASQUE_INSTANTIATE(T)                                                          \
  template void adamw_update<T>(const OptimizerSettings&, const OptimizedTensor<T>&);  \
  template double lamb_update<T>(const OptimizerSettings&, const OptimizedTensor<T>&); \
  template double sum_of_squares<T>(std::span<const T>);                               \
  template void blocks_of_squares<T>(std::span<const T>, std::span<double>);           \
  template void scale<T>(double, std::span<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
