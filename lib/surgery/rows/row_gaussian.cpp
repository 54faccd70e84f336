#include "surgery/rows/row_gaussian.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parallel.hpp"
#include "surgery/rows/row_map.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Eigen::Index kPanel = 64;

/// Rows `first` … as √weight·(row − mean), those of weight 0 left out.
RowMajor centred_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                      std::span<const double> weights, const std::vector<double>& mean,
                      std::uint64_t first, std::uint64_t count) {
  const std::uint64_t row_bytes = table.bytes() / table.shape[0];
  std::vector<std::byte> bytes(count * row_bytes);
  checkpoint.read(table, first * row_bytes, bytes);
  RowMajor out(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(mean.size()));
  std::vector<double> row(mean.size());
  Eigen::Index kept = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double weight =
        weights.empty() ? 1 / static_cast<double>(table.shape[0]) : weights[first + i];
    if (weight == 0) continue;
    to_double(table.dtype, Bytes(bytes).subspan(i * row_bytes, row_bytes), row);
    for (std::size_t j = 0; j < row.size(); ++j) {
      out(kept, static_cast<Eigen::Index>(j)) = std::sqrt(weight) * (row[j] - mean[j]);
    }
    ++kept;
  }
  out.conservativeResize(kept, Eigen::NoChange);
  return out;
}

}  // namespace

/// Pᵀ·L·D·Lᵀ·P of the covariance: good for those without full rank, too.
struct RowGaussian::Factor {
  Eigen::LDLT<Eigen::MatrixXd> ldlt;
  Eigen::VectorXd root;  ///< √D; what rounding made negative is 0
};

RowGaussian::RowGaussian(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                         std::span<const double> weights, std::vector<double> mean, int threads)
    : mean_(std::move(mean)) {
  const auto width = static_cast<Eigen::Index>(mean_.size());
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(width, width);
  const std::uint64_t rows = table.shape[0];
  const std::uint64_t step = rows_per_block(table);
  for (std::uint64_t first = 0; first < rows; first += step) {
    const RowMajor block =
        centred_rows(checkpoint, table, weights, mean_, first, std::min(step, rows - first));
    // The lower triangle, some columns to a thread.
    parallel_for((width + kPanel - 1) / kPanel, threads, [&](Index panel) {
      const Eigen::Index at = panel * kPanel;
      const Eigen::Index columns = std::min(kPanel, width - at);
      covariance.block(at, at, width - at, columns).noalias() +=
          block.rightCols(width - at).transpose() * block.middleCols(at, columns);
    });
  }
  if (!covariance.allFinite()) {
    throw InputError(
        checkpoint.path(),
        fmt::format("tensor '{}': the covariance of its rows is not finite", escape(table.name)));
  }
  factor_ = std::make_unique<Factor>();
  factor_->ldlt.compute(covariance);
  factor_->root = factor_->ldlt.vectorD().cwiseMax(0.0).cwiseSqrt();
}

RowGaussian::~RowGaussian() = default;

void RowGaussian::transform(std::span<const double> noise, std::span<double> out) const {
  const auto width = static_cast<Eigen::Index>(mean_.size());
  Eigen::VectorXd sample =
      factor_->root.cwiseProduct(Eigen::Map<const Eigen::VectorXd>(noise.data(), width));
  sample = factor_->ldlt.matrixL() * sample;
  sample = factor_->ldlt.transpositionsP().transpose() * sample;
  Eigen::Map<Eigen::VectorXd>(out.data(), width) =
      sample + Eigen::Map<const Eigen::VectorXd>(mean_.data(), width);
}

}  // namespace masque::surgery
