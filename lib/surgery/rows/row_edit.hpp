// A table with other rows: old ones in another order, new ones computed.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/transfer.hpp"

namespace masque::surgery {

/// `out` ← the row of the new id `id`, one number a column. Thread-safe.
using RowValues = std::function<void(std::uint64_t id, std::span<double> out)>;

/// The bytes of `tensor`, which lies in `checkpoint`, with other rows. A vector is a table of rows
/// of one element.
///
/// from    new row → old row, of which the bytes are copied, or VocabularyChange::kNew: computed
/// values  of the rows that are new; rounded once. Not called if there are none
///
/// The rows are read and computed as they are requested, about 1 MiB at a time; they do not depend
/// on the number of threads. The checkpoint and the tensor must outlive the source, which throws
/// InputError for a row that the tensor's type cannot hold.
store::Source edited_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor,
                          std::shared_ptr<const std::vector<std::uint64_t>> from, RowValues values);

/// A copy of `tensor` as a table: a vector [n] gets the shape [n, 1].
store::TensorInfo as_table(const store::TensorInfo& tensor);

}  // namespace masque::surgery
