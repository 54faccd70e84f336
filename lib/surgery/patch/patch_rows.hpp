// The jobs of `embed-fix expr` and `embed-fix norm`: some rows of the input table with other
// numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/edit/edit_report.hpp"

namespace masque::surgery {

/// What a user asks of apply_expressions().
struct PatchRequest : EditRequest {
  TiedPolicy tied = TiedPolicy::kKeep;  ///< what to do with a head that uses the table
};

/// How a row moved.
struct PatchedRow {
  std::uint64_t row = 0;   ///< its id
  std::string token;       ///< empty if unknown
  double norm_before = 0;  ///< Euclidean, of the stored row
  double norm_after = 0;   ///< Euclidean, in double, before it is rounded
  double cosine = 0;       ///< of the row before and after; NaN if either norm is 0
};

/// What apply_expressions() did, or would do with dry_run.
struct PatchReport : EditReport {
  std::string tensor;            ///< the input table
  std::vector<PatchedRow> rows;  ///< those that were assigned to, by id
};

/// Writes `in` to `out` with the input table after these `programs` of RowExpressions, in order, as
/// `request` says. Computed in double, each row rounded once. A head that is tied to the table, or
/// stored as a copy of it, changes with it unless request.tied says otherwise; a head of its own
/// stays. Memory: the assigned rows and a few MiB a thread. Throws UsageError for a program that
/// RowExpressions refuses, InputError for a row that is not finite in the table's type, for a head
/// that request.tied does not allow, and as find_embedding_table() and finish_edit(); `out` is then
/// unchanged.
PatchReport apply_expressions(const std::string& in, const std::string& out,
                              const std::vector<std::string>& programs,
                              const PatchRequest& request);

/// What a user asks of scale_to_norm().
struct NormRequest : PatchRequest {
  std::optional<double> to;         ///< Euclidean norm; absent: NormReport::norm_before
  std::optional<std::string> rows;  ///< ids, ranges, tokens: "5,10-20,king"; absent: all
};

/// What scale_to_norm() did, or would do with dry_run.
struct NormReport : EditReport {
  std::string tensor;           ///< the input table
  std::uint64_t rows = 0;       ///< scaled
  std::uint64_t zero_rows = 0;  ///< left alone, having no direction
  double norm = 0;              ///< of each scaled row, Euclidean
  double norm_before = 0;       ///< mean norm of the scaled rows
};

/// Writes `in` to `out` with those rows of the input table that `request` lists scaled to one
/// Euclidean norm. Throws InputError for a listed row that does not exist or has no finite norm,
/// and if all have norm 0. Otherwise as apply_expressions().
NormReport scale_to_norm(const std::string& in, const std::string& out, const NormRequest& request);

}  // namespace masque::surgery
