#include "surgery/rows/table_stats.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/processor/vectorize.hpp"
#include "base/thread/parallel.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

bool all_finite(std::span<const double> row) {
  return std::all_of(row.begin(), row.end(), [](double x) { return std::isfinite(x); });
}

double norm(std::span<const double> row) { return std::sqrt(dot(row, row)); }

/// Sums over the rows of one block.
struct Part {
  TableStats stats;
  double norms = 0;
  std::vector<double> all_norms;
  std::vector<double> units;  // Σ row / ‖row‖
  std::vector<double> rows;   // Σ row
};

void add(std::vector<double>& to, std::span<const double> row, double scale) {
  for (std::size_t j = 0; j < row.size(); ++j) to[j] += row[j] * scale;
}

Part part_of(std::span<const double> values, std::size_t width) {
  Part part;
  part.units.assign(width, 0.0);
  part.rows.assign(width, 0.0);
  part.stats.norm_minimum = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < values.size(); i += width) {
    const auto row = values.subspan(i, width);
    if (!all_finite(row)) {
      ++part.stats.not_finite_rows;
      continue;
    }
    const double length = norm(row);
    ++part.stats.rows;
    part.norms += length;
    part.all_norms.push_back(length);
    part.stats.norm_minimum = std::min(part.stats.norm_minimum, length);
    part.stats.norm_maximum = std::max(part.stats.norm_maximum, length);
    add(part.rows, row, 1);
    if (length > 0) {
      add(part.units, row, 1 / length);
    } else {
      ++part.stats.zero_rows;
    }
  }
  return part;
}

void insert_best(std::vector<Neighbour>& best, Neighbour candidate, std::size_t count) {
  const auto nearer = [](const Neighbour& a, const Neighbour& b) {
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.row < b.row;
  };
  if (best.size() == count && !nearer(candidate, best.back())) return;
  best.insert(std::upper_bound(best.begin(), best.end(), candidate, nearer), candidate);
  if (best.size() > count) best.pop_back();
}

// Distances are never NaN here: see compare_rows.
bool farther(const RowChange& a, const RowChange& b) {
  return a.distance != b.distance ? a.distance > b.distance : a.row < b.row;
}

RowChange compare_rows(std::uint64_t row, std::span<const double> a, std::span<const double> b) {
  RowChange change{row, norm(a), norm(b), 0, 1};
  double squares = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    // What is equal differs by nothing, infinities and NaN, too.
    if (a[j] != b[j] && !(std::isnan(a[j]) && std::isnan(b[j])))
      squares += (b[j] - a[j]) * (b[j] - a[j]);
  }
  change.distance = std::sqrt(squares);
  if (std::isnan(change.distance)) change.distance = std::numeric_limits<double>::infinity();
  const double norms = change.norm_a * change.norm_b;
  if (norms > 0) change.cosine = dot(a, b) / norms;
  return change;
}

}  // namespace

TableStats table_stats(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                       int threads) {
  const std::uint64_t step = rows_per_block(table);
  const std::size_t width = table.shape[1];
  std::vector<Part> parts(divide_up(table.shape[0], step));
  for_each_row_block(checkpoint, table, threads,
                     [&](std::uint64_t first, std::span<const double> rows) {
                       parts[first / step] = part_of(rows, width);
                     });
  TableStats out;
  out.width = width;
  out.mean.assign(width, 0.0);
  out.norm_minimum = std::numeric_limits<double>::infinity();
  std::vector<double> units(width, 0.0);
  double norms = 0;
  for (const Part& part : parts) {
    out.rows += part.stats.rows;
    out.zero_rows += part.stats.zero_rows;
    out.not_finite_rows += part.stats.not_finite_rows;
    out.norm_minimum = std::min(out.norm_minimum, part.stats.norm_minimum);
    out.norm_maximum = std::max(out.norm_maximum, part.stats.norm_maximum);
    norms += part.norms;
    add(out.mean, part.rows, 1);
    add(units, part.units, 1);
  }
  const auto n = static_cast<double>(out.rows);
  if (out.rows == 0) throw InputError(checkpoint.path(), "the table has no finite row");
  out.norm_mean = norms / n;
  double squares = 0;
  for (const Part& part : parts) {
    for (const double length : part.all_norms) {
      squares += (length - out.norm_mean) * (length - out.norm_mean);
    }
  }
  out.norm_deviation = std::sqrt(squares / n);
  for (double& value : out.mean) value /= n;
  out.mean_norm = norm(out.mean);
  // Σ over all pairs of uᵢ·uⱼ is ‖Σ u‖²; the n pairs of a row with itself are 1 each.
  const double m = n - static_cast<double>(out.zero_rows);
  out.mean_cosine =
      m > 1 ? (dot(units, units) - m) / (m * (m - 1)) : std::numeric_limits<double>::quiet_NaN();
  out.rows = table.shape[0];
  return out;
}

RowAgainstMean row_against_mean(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                                std::uint64_t row, const std::vector<double>& mean) {
  const std::vector<double> values = read_row(checkpoint, table, row);
  const RowChange change = compare_rows(row, values, mean);
  const bool defined = change.norm_a > 0 && change.norm_b > 0;
  return {change.norm_a, defined ? change.cosine : std::numeric_limits<double>::quiet_NaN(),
          change.distance};
}

std::vector<Neighbour> nearest_rows(const store::Checkpoint& checkpoint,
                                    const store::TensorInfo& table, std::uint64_t row,
                                    std::size_t count, int threads) {
  const std::vector<double> query = read_row(checkpoint, table, row);
  const double query_norm = norm(query);
  if (!(query_norm > 0) || !std::isfinite(query_norm)) {
    throw InputError(checkpoint.path(),
                     fmt::format("tensor '{}': row {} has norm {}, expected a finite norm above 0",
                                 escape(table.name), row, query_norm));
  }
  const std::uint64_t step = rows_per_block(table);
  const std::size_t width = table.shape[1];
  std::vector<std::vector<Neighbour>> parts(divide_up(table.shape[0], step));
  for_each_row_block(checkpoint, table, threads,
                     [&](std::uint64_t first, std::span<const double> rows) {
                       for (std::size_t i = 0; i < rows.size() / width; ++i) {
                         const auto other = rows.subspan(i * width, width);
                         const double length = norm(other);
                         if (first + i == row || !(length > 0) || !std::isfinite(length)) continue;
                         insert_best(parts[first / step],
                                     {first + i, dot(query, other) / (query_norm * length)}, count);
                       }
                     });
  std::vector<Neighbour> best;
  for (const auto& part : parts) {
    for (const Neighbour& neighbour : part) insert_best(best, neighbour, count);
  }
  return best;
}

TableDiff table_diff(const store::Checkpoint& a, const store::TensorInfo& in_a,
                     const store::Checkpoint& b, const store::TensorInfo& in_b, std::size_t top,
                     int threads) {
  if (in_a.shape[1] != in_b.shape[1]) {
    throw InputError(b.path(),
                     fmt::format("the tables have {} and {} columns, expected the same number",
                                 in_a.shape[1], in_b.shape[1]));
  }
  const std::size_t width = in_a.shape[1];
  const std::uint64_t rows = std::min(in_a.shape[0], in_b.shape[0]);
  const std::uint64_t step = rows_per_block(in_a);
  std::vector<std::vector<RowChange>> parts(divide_up(in_a.shape[0], step));
  for_each_row_block(a, in_a, threads, [&](std::uint64_t first, std::span<const double> left) {
    if (first >= rows) return;
    const std::uint64_t count = std::min<std::uint64_t>(left.size() / width, rows - first);
    const std::uint64_t row_bytes = in_b.bytes() / in_b.shape[0];
    std::vector<std::byte> bytes(count * row_bytes);
    std::vector<double> right(count * width);
    b.read(in_b, first * row_bytes, bytes);
    to_double(in_b.dtype, bytes, right);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto x = left.subspan(i * width, width);
      const auto y = std::span<const double>(right).subspan(i * width, width);
      const bool same = std::equal(x.begin(), x.end(), y.begin(), [](double l, double r) {
        return l == r || (std::isnan(l) && std::isnan(r));
      });
      if (same) continue;
      parts[first / step].push_back(compare_rows(first + i, x, y));
    }
  });
  TableDiff out;
  out.rows = rows;
  double cosines = 0;
  for (const auto& part : parts) {
    for (const RowChange& change : part) {
      ++out.changed;
      cosines += change.cosine;
      out.max_distance = std::max(out.max_distance, change.distance);
      out.top.push_back(change);
    }
    if (out.top.size() > 4 * top + 4096) {  // keep the list short on large tables
      std::nth_element(out.top.begin(), out.top.begin() + static_cast<std::ptrdiff_t>(top),
                       out.top.end(), farther);
      out.top.resize(top);
    }
  }
  if (out.changed > 0) out.mean_cosine = cosines / static_cast<double>(out.changed);
  std::sort(out.top.begin(), out.top.end(), farther);
  if (out.top.size() > top) out.top.resize(top);
  return out;
}

namespace {

constexpr std::size_t kPartSums = 16;
constexpr std::size_t kKeys = 8;  ///< rows that one row is compared with in a pass

/// Products of a row with kKeys rows: each a sum in kPartSums parts, added in order, so that every
/// instruction set gives the same bits.
inline void dot_rows(const float* row, const float* keys, std::size_t width, float* out) {
  for (std::size_t k = 0; k < kKeys; ++k) {
    float lanes[kPartSums] = {};
    const float* key = keys + k * width;
    for (std::size_t i = 0; i < width; i += kPartSums) {
      for (std::size_t l = 0; l < kPartSums; ++l) lanes[l] += row[i + l] * key[i + l];
    }
    float sum = 0;
    for (std::size_t l = 0; l < kPartSums; ++l) sum += lanes[l];
    out[k] = sum;
  }
}

/// The rows at length 1, padded to whole lanes; rows without a direction are 0.
class UnitRows {
 public:
  UnitRows(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
           const SimilarRowsRequest& request)
      : rows(table.shape[0]),
        width(round_up(table.shape[1], kPartSums)),
        usable(rows, 0),
        values((rows + kKeys) * width, 0.0F) {
    const std::uint64_t columns = table.shape[1];
    const std::size_t bytes = columns * (dtype_bits(table.dtype) / 8);
    parallel_for(static_cast<Index>(rows), request.threads, [&](Index r) {
      const auto row = static_cast<std::size_t>(r);
      if (row < request.skip.size() && request.skip[row] != 0) return;
      std::vector<std::byte> raw(bytes);
      std::vector<double> x(columns);
      checkpoint.read(table, row * bytes, raw);
      to_double(table.dtype, raw, x);
      double norm = 0;
      for (const double value : x) norm += value * value;
      norm = std::sqrt(norm);
      if (!(norm > 0) || !std::isfinite(norm)) return;
      usable[row] = 1;
      for (std::size_t i = 0; i < columns; ++i) {
        values[row * width + i] = static_cast<float>(x[i] / norm);
      }
    });
  }

  const float* row(std::size_t r) const { return values.data() + r * width; }

  std::size_t rows;
  std::size_t width;
  std::vector<std::uint8_t> usable;
  std::vector<float> values;
};

using Near = std::pair<float, std::uint32_t>;

/// Nearer first, then the smaller row.
bool nearer(const Near& a, const Near& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

/// Keeps the nearest of those that it is shown.
void offer(std::vector<Near>& heap, std::size_t count, Near candidate) {
  if (heap.size() == count) {
    if (!nearer(candidate, heap.front())) return;
    std::pop_heap(heap.begin(), heap.end(), nearer);
    heap.pop_back();
  }
  heap.push_back(candidate);
  std::push_heap(heap.begin(), heap.end(), nearer);
}

}  // namespace

std::vector<std::vector<std::uint32_t>> similar_rows(const store::Checkpoint& checkpoint,
                                                     const store::TensorInfo& table,
                                                     const SimilarRowsRequest& request) {
  MASQUE_CHECK(table.shape.size() == 2 && table.shape[0] <= UINT32_MAX);
  const UnitRows unit(checkpoint, table, request);
  std::vector<std::vector<std::uint32_t>> found(unit.rows);
  if (request.count == 0) return found;
  constexpr std::size_t kBlock = 64;  // rows that share a pass over the table
  std::atomic<std::uint64_t> done{0};
  parallel_for(static_cast<Index>(divide_up(unit.rows, kBlock)), request.threads, [&](Index b) {
    const std::size_t begin = static_cast<std::size_t>(b) * kBlock;
    const std::size_t end = std::min(unit.rows, begin + kBlock);
    std::vector<std::vector<Near>> heaps(end - begin);
    for (std::size_t key = 0; key < unit.rows; key += kKeys) {
      for (std::size_t row = begin; row < end; ++row) {
        if (unit.usable[row] == 0) continue;
        std::array<float, kKeys> cosine{};
        vectorized<dot_rows>(unit.row(row), unit.row(key), unit.width, cosine.data());
        for (std::size_t k = 0; k < kKeys && key + k < unit.rows; ++k) {
          if (key + k == row || unit.usable[key + k] == 0) continue;
          offer(heaps[row - begin], request.count,
                {cosine[k], static_cast<std::uint32_t>(key + k)});
        }
      }
    }
    for (std::size_t row = begin; row < end; ++row) {
      std::sort(heaps[row - begin].begin(), heaps[row - begin].end(), nearer);
      for (const Near& near : heaps[row - begin]) found[row].push_back(near.second);
    }
    if (request.progress) request.progress(done += end - begin, unit.rows);
  });
  return found;
}

}  // namespace masque::surgery
