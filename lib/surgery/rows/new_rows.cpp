#include "surgery/rows/new_rows.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/parallel.hpp"
#include "surgery/rows/row_map.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

class ComputedRows {
 public:
  ComputedRows(const store::Checkpoint& checkpoint, const store::TensorInfo& table, ComputedRow row)
      : checkpoint_(checkpoint),
        table_(table),
        row_(std::move(row)),
        row_bytes_(table.bytes() / table.shape[0]) {}

  /// Rows that lie one after the other in the old table too are read at once.
  void fill(std::uint64_t offset, MutableBytes out) const {
    std::vector<double> values(table_.shape[1]);
    std::uint64_t begin = 0;  // of the run that is not read yet
    std::uint64_t count = 0;
    std::uint64_t from = 0;
    const std::uint64_t first = offset / row_bytes_;
    const std::uint64_t rows = out.size() / row_bytes_;
    const auto read_run = [&] {
      if (count == 0) return;
      checkpoint_.read(table_, from * row_bytes_,
                       out.subspan(begin * row_bytes_, count * row_bytes_));
      count = 0;
    };
    for (std::uint64_t i = 0; i < rows; ++i) {
      const std::uint64_t source = row_(first + i, values);
      if (source == kComputedRow) {
        read_run();
        encode(first + i, values, out.subspan(i * row_bytes_, row_bytes_));
        continue;
      }
      MASQUE_CHECK(source < table_.shape[0]);
      if (count == 0 || source != from + count) {
        read_run();
        begin = i;
        from = source;
      }
      ++count;
    }
    read_run();
  }

 private:
  void encode(std::uint64_t row, std::span<double> values, MutableBytes out) const {
    const auto finite = [](double value) { return std::isfinite(value); };
    const bool before = std::ranges::all_of(values, finite);
    from_double(table_.dtype, values, out);
    to_double(table_.dtype, out, values);
    if (before && std::ranges::all_of(values, finite)) return;
    throw InputError(checkpoint_.path(),
                     fmt::format("tensor '{}': row {} would {}", escape(table_.name), row,
                                 before ? fmt::format("overflow {}", dtype_name(table_.dtype))
                                        : std::string("not be finite")));
  }

  const store::Checkpoint& checkpoint_;
  const store::TensorInfo& table_;
  ComputedRow row_;
  std::uint64_t row_bytes_;
};

}  // namespace

store::Source new_rows_source(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                              ComputedRow row) {
  const auto rows = std::make_shared<const ComputedRows>(checkpoint, table, std::move(row));
  return store::Computed{
      [rows](std::uint64_t offset, MutableBytes out) { rows->fill(offset, out); },
      rows_per_block(table) * (table.bytes() / table.shape[0]), rows.get()};
}

void try_source(const store::Source& source, std::uint64_t bytes, int threads) {
  const auto* computed = std::get_if<store::Computed>(&source);
  if (computed == nullptr) return;
  const std::uint64_t chunk = computed->chunk_bytes;
  parallel_for(static_cast<Index>(divide_up(bytes, chunk)), threads, [&](Index i) {
    thread_local std::vector<std::byte> buffer;
    const std::uint64_t offset = static_cast<std::uint64_t>(i) * chunk;
    buffer.resize(std::min(chunk, bytes - offset));
    computed->fill(offset, buffer);
  });
}

ComputedRow summed_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                        std::uint64_t first, std::function<TableRows(Index place)> sum) {
  return [&checkpoint, &table, first, sum = std::move(sum)](
             std::uint64_t row, std::span<double> values) -> std::uint64_t {
    if (row < first) return row;
    const TableRows rows = sum(static_cast<Index>(row - first));
    const auto stored = [&](std::size_t k) {
      return first + static_cast<std::uint64_t>(rows.parts[k].row);
    };
    if (rows.count == 1 && rows.parts[0].weight == 1) return stored(0);
    std::ranges::fill(values, 0.0);
    for (std::size_t k = 0; k < rows.count; ++k) {
      const std::vector<double> part = read_row(checkpoint, table, stored(k));
      for (std::size_t d = 0; d < values.size(); ++d) values[d] += rows.parts[k].weight * part[d];
    }
    return kComputedRow;
  };
}

}  // namespace masque::surgery
