#include "kernel/softmax/log_probability.hpp"

#include <algorithm>
#include <complex>
#include <utility>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/parallel.hpp"
#include "kernel/softmax/exp_sum_rows.hpp"
#include "kernel/softmax/log_sum.hpp"

namespace masque::kernel {
namespace {

/// Far below any logit, and finite: a difference of two is a number.
constexpr float kExcludedLogit = -1e30F;

constexpr Index kTileRows = 128;
constexpr Index kChunk = 8 * Linear<float>::kColumnBlock;  // columns whose logits exist at a time

/// log Σ exp of all chunks of a row, added in their order.
LogSum log_sum(std::span<const ExpSum> chunks) {
  double largest = chunks[0].largest;
  for (const ExpSum& chunk : chunks) {
    if (!(chunk.largest <= largest)) largest = chunk.largest;
  }
  double sum = 0;
  for (const ExpSum& chunk : chunks) sum += chunk.sum * std::exp(chunk.largest - largest);
  return {largest, std::log(sum)};
}

}  // namespace

template <class T>
void log_probability_forward(MatrixView<const T> x, const Linear<T>& head, double scale,
                             std::span<const TokenId> targets, std::span<double> out,
                             TokenId excluded, double cap) {
  const Index rows = x.rows, vocabulary = head.outputs(), chunks = divide_up(vocabulary, kChunk);
  MASQUE_CHECK(static_cast<Index>(targets.size()) == rows);
  MASQUE_CHECK(static_cast<Index>(out.size()) == rows && vocabulary > 0);
  for (const TokenId target : targets)
    MASQUE_CHECK(target >= 0 && target < vocabulary && target != excluded);
  Matrix<ExpSum> sums(rows, chunks);
  const Index tiles = divide_up(rows, kTileRows);
  parallel_items(tiles * chunks, [&](Index item) {
    const Index row = item / chunks * kTileRows, count = std::min(kTileRows, rows - row);
    const Index chunk = item % chunks, first = chunk * kChunk;
    thread_local Matrix<T> logits;
    logits.resize(count, std::min(kChunk, vocabulary - first));
    head.forward_columns(first, x.middle_rows(row, count), logits.view());
    if (cap > 0) soft_cap(cap, logits.view());
    const Index out_of_sum = excluded - first;
    for (Index i = 0; i < count; ++i) {
      T* values = logits.view().row(i);
      if (out_of_sum >= 0 && out_of_sum < logits.columns()) values[out_of_sum] = T(kExcludedLogit);
      sums.view().at(row + i, chunk) = exp_sum(values, logits.columns(), scale);
      const auto r = static_cast<std::size_t>(row + i);
      const Index target = targets[r] - first;
      if (target >= 0 && target < logits.columns()) {
        // Rounded as the exponents of the sum are: the target's is none above the largest.
        out[r] = static_cast<double>(reference::real_part(static_cast<T>(scale) * values[target]));
      }
    }
  });
  for (Index i = 0; i < rows; ++i) {
    double& target = out[static_cast<std::size_t>(i)];
    target = target - log_sum(std::as_const(sums).view().row_span(i));
  }
}

#define MASQUE_INSTANTIATE(T)                                                                    \
  template void log_probability_forward<T>(MatrixView<const T>, const Linear<T>&, double,        \
                                           std::span<const TokenId>, std::span<double>, TokenId, \
                                           double);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
