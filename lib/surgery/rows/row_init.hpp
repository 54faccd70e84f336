// New rows of a table: their initial values, and the table with them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/transfer.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

// A table with other rows: old ones in another order, new ones computed.

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

// Initial values.

/// What is known when new rows are requested. References must outlive what is made from it.
struct RowInitContext {
  const store::Checkpoint& checkpoint;           ///< before the change
  const TokenNames& names;                       ///< of the ids before; may be empty()
  const VocabularyChange& change;                ///< which ids are new, and their tokens
  std::uint64_t rows = 0;                        ///< of the tables before
  std::optional<double> initializer_range = {};  ///< of config.json
  std::uint64_t seed = 0;                        ///< of random rows
  int threads = 0;                               ///< ≤ 0: all processors
  std::vector<std::string>* notes = nullptr;     ///< for people; may be nullptr
};

/// For every new id, in ascending order: the old rows whose mean is the new row. Empty: all rows
/// that have a token.
using RowMeans = std::vector<std::vector<std::uint64_t>>;

/// One kind of new rows. Exactly one of `means` and `values` is there. The functions throw
/// UsageError for an invalid argument, InputError if the files do not allow it.
struct RowInit {
  std::string_view name;      ///< "copy"
  std::string_view argument;  ///< what follows "copy:": "T"; in brackets if it may be left out
  std::string_view help;      ///< one line for people
  /// Rows that are means of old ones: settled once, the same in all tables.
  RowMeans (*means)(const RowInitContext& context, const std::string& argument);
  /// Rows computed from each table, [rows, width]; of a vector (an output bias) width is 1 and
  /// `vector` true. `table` must outlive the result.
  RowValues (*values)(const RowInitContext& context, const std::string& argument,
                      const store::TensorInfo& table, bool vector);
};

/// All initializers, sorted by name.
std::span<const RowInit> row_inits();

/// How people write `init`: "mean", "copy:T", "cov[:S]".
std::string spelling(const RowInit& init);

/// An initializer with its argument, settled for a change. For one thread; the RowValues that it
/// gives are thread-safe and may outlive it, but not the context.
class NewRows {
 public:
  /// `spec` is "mean", "copy:T", … `context` must outlive this and what of() returns. Throws
  /// UsageError for one that is none, and what RowInit::means throws.
  NewRows(const RowInitContext& context, const std::string& spec);
  /// New rows that are the `means` of old rows: one entry for each new id of `context`, which must
  /// outlive this and what of() returns.
  NewRows(const RowInitContext& context, RowMeans means);

  /// The new rows of the table (or vector) `tensor` of the checkpoint, which must outlive this.
  /// Random ones are keyed by the seed, the tensor's name and the id. Initializers that read the
  /// table do so once per table. Throws what RowInit::values throws, InputError for a mean that is
  /// not finite.
  RowValues of(const store::TensorInfo& tensor) const;

 private:
  RowValues make(const store::TensorInfo& tensor) const;

  const RowInitContext* context_;
  std::string argument_;
  const RowInit* init_ = nullptr;  ///< nullptr: means only
  std::shared_ptr<const std::vector<std::uint64_t>> new_ids_;
  std::shared_ptr<const RowMeans> means_;
  mutable std::map<const store::TensorInfo*, RowValues> made_;  ///< some read the whole table
};

/// The row that `text` names: a token of `context`, else an id, "N" or "#N". Throws InputError if
/// there is no such token or row; `what` names the text in messages.
std::uint64_t find_row(const RowInitContext& context, const std::string& text,
                       std::string_view what);

}  // namespace masque::surgery
