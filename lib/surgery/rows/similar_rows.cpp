#include "surgery/rows/similar_rows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/vectorize.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

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
        width((table.shape[1] + kPartSums - 1) / kPartSums * kPartSums),
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
  parallel_for(static_cast<Index>((unit.rows + kBlock - 1) / kBlock), request.threads,
               [&](Index b) {
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
