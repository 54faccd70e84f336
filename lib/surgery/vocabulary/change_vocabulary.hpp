// The job of `embed-fix add`, `remove`, `keep`, `permute`, `resize` and of whatever else gives a
// checkpoint another vocabulary: tables, head, biases, configs and tokenizer files, in one go.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/rows/row_init.hpp"
#include "surgery/vocabulary/config_ids.hpp"
#include "surgery/vocabulary/vocabulary_files.hpp"
#include "surgery/vocabulary/vocabulary_plan.hpp"

namespace masque::surgery {

/// What a user asks of change_vocabulary().
struct VocabularyRequest {
  std::string init = "mean";  ///< of new rows, see surgery/rows/row_init.hpp
  /// If set, used instead of `init`: the old rows whose mean is each new row; empty: all rows that
  /// have a token.
  std::function<RowMeans(const RowInitContext& context)> means;
  /// If set, called instead of change_vocabulary_files().
  std::function<std::vector<std::string>(CheckpointEdit& edit, const TokenNames& before,
                                         const VocabularyChange& change)>
      change_files;
  bool other_tokenizer = false;       ///< change_files exchanges the tokenizer as a whole
  RoleIds roles;                      ///< with other_tokenizer: the ids of its roles in configs
  std::optional<std::string> tensor;  ///< the input table; absent: by the family's names
  std::uint64_t seed = 0;             ///< of random new rows
  bool dry_run = false;               ///< computes everything and writes nothing
  bool verify = false;                ///< reads the output back before it is final
  store::WriteOptions write;          ///< `input` is ignored
};

/// A row that was computed.
struct NewRow {
  std::uint64_t id = 0;  ///< after the change
  std::string token;     ///< empty: none
  double norm = 0;       ///< Euclidean, of its row in the input table, as it is stored
};

/// What was done, or would be with dry_run.
struct VocabularyReport {
  std::string family;               ///< empty if unknown
  std::string tensor;               ///< the input table
  DType dtype = DType::kF32;        ///< of the input table
  std::uint64_t width = 0;          ///< columns of the input table
  std::uint64_t rows_before = 0;    ///< of the input table
  std::uint64_t rows_after = 0;     ///< of the input table
  std::uint64_t tokens_before = 0;  ///< rows with a token
  std::uint64_t tokens_after = 0;   ///< rows with a token
  /// Old rows that were removed, without refilled rows that had no token.
  std::uint64_t rows_gone = 0;
  std::vector<NewRow> new_rows;              ///< that were computed
  std::uint64_t copied_rows = 0;             ///< further copies of rows that also exist elsewhere
  std::vector<std::string> changed_tensors;  ///< sorted
  std::vector<std::string> edited_files;     ///< of the folder, with another text, sorted
  std::vector<std::string> notes;            ///< for people
  std::optional<VerifyResult> verified;      ///< with VocabularyRequest::verify
};

/// Makes the change from what is there: at least one row. May throw InputError and UsageError.
using VocabularyPlan = std::function<VocabularyChange(const VocabularyState&)>;

/// Writes `in` with the vocabulary that `plan` makes to `out`, as `request` says: a file to a file,
/// a folder (or index) to a folder. Old rows are copied bit for bit; new ones are computed in
/// double and rounded once. Memory: a few MiB a thread and what the initializer and the names need.
/// Every file of the tokenizer follows, and the ids in config.json and generation_config.json.
///
/// Throws UsageError and InputError (tokens beyond the table, errors of the plan, the initializer
/// or the tokenizer, output exists, …); `out` is then unchanged.
VocabularyReport change_vocabulary(const std::string& in, const std::string& out,
                                   const VocabularyPlan& plan, const VocabularyRequest& request);

}  // namespace masque::surgery
