// The nearest rows of every row of a table at once.
#pragma once

#include <cstdint>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/transfer.hpp"

namespace masque::surgery {

/// Which neighbours similar_rows() looks for.
struct SimilarRowsRequest {
  std::size_t count = 10;  ///< rows for each row
  /// 1 for rows that are nobody's neighbour and have none; may be short.
  std::vector<std::uint8_t> skip;
  int threads = 0;                        ///< ≤ 0: all processors
  store::ProgressFunction progress = {};  ///< rows of the table; may be empty
};

/// For every row of `table` [rows, width] of `checkpoint` the count of `request` rows with the
/// largest cosine, nearest first, equal ones by ascending row; rows of norm 0 or with values that
/// are not finite have none and are none. Rows are normalised in double and compared in float:
/// neighbours whose cosines differ by less than 1e-6 may change places. Cost rows² · width; memory:
/// the table in F32, and 8 bytes a neighbour. The same for any number of threads. The table must
/// have at most 2³² − 1 rows.
std::vector<std::vector<std::uint32_t>> similar_rows(const store::Checkpoint& checkpoint,
                                                     const store::TensorInfo& table,
                                                     const SimilarRowsRequest& request);

}  // namespace masque::surgery
