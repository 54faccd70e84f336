#include "surgery/rows/row_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "base/thread/parallel.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

constexpr std::size_t kLanes = 8;
constexpr std::uint64_t kBlockBytes = 1 << 20;

using Lanes = std::array<double, kLanes>;

double sum(const Lanes& lanes) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

inline double dot_lanes(const double* a, const double* b, std::size_t n) {
  Lanes lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (; i < n; ++i) lanes[i % kLanes] += a[i] * b[i];
  return sum(lanes);
}

/// Products of a row with itself, with its image, and of their difference: one pass.
struct Products {
  double xx;
  double xy;
  double yy;
  double dd;
};

inline Products map_row(const double* x, const double* shift, double scale, std::size_t n,
                        double* y) {
  Lanes xx{};
  Lanes xy{};
  Lanes yy{};
  Lanes dd{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double a = x[i + l];
      const double b = scale * a + shift[i + l];
      y[i + l] = b;
      xx[l] += a * a;
      xy[l] += a * b;
      yy[l] += b * b;
      dd[l] += (b - a) * (b - a);
    }
  }
  for (; i < n; ++i) {
    const double a = x[i];
    const double b = scale * a + shift[i];
    y[i] = b;
    xx[i % kLanes] += a * a;
    xy[i % kLanes] += a * b;
    yy[i % kLanes] += b * b;
    dd[i % kLanes] += (b - a) * (b - a);
  }
  return {sum(xx), sum(xy), sum(yy), sum(dd)};
}

inline void add_row(const double* row, double weight, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] += weight * row[i];
}

/// The largest magnitude that rounds to a finite number of the type.
double largest_magnitude(DType dtype) {
  switch (dtype) {
    case DType::kF16: return std::nextafter(65520.0, 0);
    case DType::kBF16: return std::nextafter(0x1.FFp127, 0);
    case DType::kF32: return std::nextafter(0x1.FFFFFFp127, 0);
    default: return std::numeric_limits<double>::max();
  }
}

}  // namespace

void RowMoves::add(const RowMoves& later) {
  rows += later.rows;
  sum_norm_before += later.sum_norm_before;
  sum_norm_after += later.sum_norm_after;
  sum_relative += later.sum_relative;
  max_relative = std::max(max_relative, later.max_relative);
  sum_cosine += later.sum_cosine;
  if (later.min_cosine < min_cosine) {
    min_cosine = later.min_cosine;
    min_cosine_row = later.min_cosine_row;
  }
  overflow_row = std::min(overflow_row, later.overflow_row);
}

std::uint64_t rows_per_block(const store::TensorInfo& table) {
  const std::uint64_t row_bytes = std::max<std::uint64_t>(1, table.bytes() / table.shape[0]);
  return std::max<std::uint64_t>(1, kBlockBytes / row_bytes);
}

RowMoves map_rows(const AffineRows& map, DType dtype, std::uint64_t width, std::uint64_t first_row,
                  Bytes in, MutableBytes out) {
  const std::uint64_t row_bytes = width * (dtype_bits(dtype) / 8);
  MASQUE_CHECK(map.shift.size() == width && in.size() == out.size() && in.size() % row_bytes == 0);
  const double limit = largest_magnitude(dtype);
  RowMoves moves;
  std::vector<double> x(width);
  std::vector<double> y(width);
  for (std::uint64_t i = 0; i < in.size() / row_bytes; ++i) {
    const std::uint64_t row = first_row + i;
    const Bytes source = in.subspan(i * row_bytes, row_bytes);
    const MutableBytes target = out.subspan(i * row_bytes, row_bytes);
    if (map.kept[row]) {
      if (source.data() != target.data()) std::memcpy(target.data(), source.data(), row_bytes);
      continue;
    }
    to_double(dtype, source, x);
    const Products p = vectorized<map_row>(x.data(), map.shift.data(), map.scale, width, y.data());
    // A sum of squares is finite unless an element is not or is huge: look closer only then.
    if (!(p.yy < limit)) {
      for (std::size_t j = 0; j < width; ++j) {
        if (std::isfinite(x[j]) && !(std::abs(y[j]) <= limit)) {
          moves.overflow_row = std::min(moves.overflow_row, row);
        }
      }
    }
    from_double(dtype, y, target);
    const double before = std::sqrt(p.xx);
    const double after = std::sqrt(p.yy);
    const double relative = before > 0 ? std::sqrt(p.dd) / before : 0;
    const double cosine = before > 0 && after > 0 ? p.xy / (before * after) : 1;
    ++moves.rows;
    moves.sum_norm_before += before;
    moves.sum_norm_after += after;
    moves.sum_relative += relative;
    moves.max_relative = std::max(moves.max_relative, relative);
    moves.sum_cosine += cosine;
    if (cosine < moves.min_cosine) {
      moves.min_cosine = cosine;
      moves.min_cosine_row = row;
    }
  }
  return moves;
}

void for_each_row_block(
    const store::Checkpoint& checkpoint, const store::TensorInfo& table, int threads,
    const std::function<void(std::uint64_t first_row, std::span<const double> rows)>& work) {
  const std::uint64_t rows = table.shape[0];
  const std::uint64_t width = table.shape[1];
  const std::uint64_t row_bytes = table.bytes() / rows;
  const std::uint64_t step = rows_per_block(table);
  parallel_for(static_cast<Index>(divide_up(rows, step)), threads, [&](Index block) {
    thread_local std::vector<std::byte> bytes;
    thread_local std::vector<double> values;
    const std::uint64_t first = static_cast<std::uint64_t>(block) * step;
    const std::uint64_t count = std::min(step, rows - first);
    bytes.resize(count * row_bytes);
    values.resize(count * width);
    checkpoint.read(table, first * row_bytes, bytes);
    to_double(table.dtype, bytes, values);
    work(first, values);
  });
}

std::vector<double> weighted_row_sum(const store::Checkpoint& checkpoint,
                                     const store::TensorInfo& table,
                                     std::span<const double> weights, int threads) {
  const std::uint64_t width = table.shape[1];
  const std::uint64_t step = rows_per_block(table);
  std::vector<std::vector<double>> parts(divide_up(table.shape[0], step));
  for_each_row_block(checkpoint, table, threads,
                     [&](std::uint64_t first, std::span<const double> rows) {
                       auto& part = parts[first / step];
                       part.assign(width, 0.0);
                       for (std::uint64_t i = 0; i < rows.size() / width; ++i) {
                         const double weight = weights.empty() ? 1.0 : weights[first + i];
                         // A row of weight 0 may hold anything, NaN included.
                         if (weight != 0)
                           vectorized<add_row>(&rows[i * width], weight, width, part.data());
                       }
                     });
  std::vector<double> total(width, 0.0);
  for (const auto& part : parts) vectorized<add_row>(part.data(), 1.0, width, total.data());
  return total;
}

std::vector<double> read_row(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                             std::uint64_t row) {
  const std::uint64_t row_bytes = table.bytes() / table.shape[0];
  std::vector<std::byte> bytes(row_bytes);
  checkpoint.read(table, row * row_bytes, bytes);
  std::vector<double> values(table.shape[1]);
  to_double(table.dtype, bytes, values);
  return values;
}

double dot(std::span<const double> a, std::span<const double> b) {
  MASQUE_CHECK(a.size() == b.size());
  return vectorized<dot_lanes>(a.data(), b.data(), a.size());
}

}  // namespace masque::surgery
