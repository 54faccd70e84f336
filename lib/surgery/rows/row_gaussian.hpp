// A normal distribution with the mean and the covariance of the rows of a table.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "store/checkpoint.hpp"

namespace masque::surgery {

/// The distribution, ready to draw from. Immutable; thread-safe.
class RowGaussian {
 public:
  /// Reads the table of `checkpoint` once. Memory: two matrices [width, width] of doubles. Cost
  /// (rows + width)·width². The covariance is Σ weight·(row − mean)(row − mean)ᵀ, summed in row
  /// order whatever the number of threads.
  ///
  /// table    [rows, width]
  /// weights  one a row, adding up to 1; rows of weight 0 may hold anything. Empty: 1/rows each
  /// mean     [width], finite
  /// threads  at most; ≤ 0: all processors
  ///
  /// Throws InputError if a row of some weight is not finite.
  RowGaussian(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
              std::span<const double> weights, std::vector<double> mean, int threads);
  ~RowGaussian();
  RowGaussian(const RowGaussian&) = delete;
  RowGaussian& operator=(const RowGaussian&) = delete;

  /// `out` ← mean + F·`noise`, where F·Fᵀ is the covariance: a sample for standard normal noise.
  /// Both [width]. Cost width².
  void transform(std::span<const double> noise, std::span<double> out) const;

 private:
  struct Factor;
  std::vector<double> mean_;
  std::unique_ptr<Factor> factor_;
};

}  // namespace masque::surgery
