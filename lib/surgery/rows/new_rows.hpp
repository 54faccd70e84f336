// A table with new rows, computed as it is written.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "store/checkpoint.hpp"
#include "store/transfer.hpp"
#include "tensor/table_rows.hpp"

namespace masque::surgery {

/// What a row function returns for a row whose numbers it has written.
inline constexpr std::uint64_t kComputedRow = ~std::uint64_t{0};

/// Gives row `row` of the new table: returns the number of the stored row to copy, or writes its
/// values into `values` (one per column) and returns kComputedRow. Called from several threads.
using ComputedRow = std::function<std::uint64_t(std::uint64_t row, std::span<double> values)>;

/// The bytes of a table whose rows are those of `row`, each computed one rounded once. `table`
/// gives the type and the width and lies in `checkpoint`; both must outlive the source. A number
/// that `row` returns must be kComputedRow or below the rows of `table`. It throws InputError for a
/// computed row that is not finite, or not any more in the table's type.
store::Source new_rows_source(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                              ComputedRow row);

/// Computes all `bytes` bytes of the new table of `source` without writing them, on up to `threads`
/// threads (≤ 0: all processors), to find what it throws. Does nothing for a source that is not
/// Computed.
void try_source(const store::Source& source, std::uint64_t bytes, int threads);

/// Rows as sums of the stored rows of `table` from `first` on: row `first` + p of the new table is
/// `sum`(p), whose rows count from `first`; rows before `first` stay. Sums of one row with weight 1
/// keep its bytes. `checkpoint` and `table` must outlive the result.
ComputedRow summed_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                        std::uint64_t first, std::function<TableRows(Index place)> sum);

}  // namespace masque::surgery
