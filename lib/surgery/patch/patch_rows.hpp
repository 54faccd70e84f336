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

struct PatchRequest : EditRequest {
  TiedPolicy tied = TiedPolicy::kKeep;
};

/// How a row moved.
struct PatchedRow {
  std::uint64_t row = 0;
  std::string token;  ///< empty if unknown
  double norm_before = 0;
  double norm_after = 0;
  double cosine = 0;
};

struct PatchReport : EditReport {
  std::string tensor;
  std::vector<PatchedRow> rows;  ///< of expr: those that were assigned to, by id
};

/// Writes `in` with the input table after these programs of RowExpressions, in order. Computed in
/// double, each row rounded once. Memory: the assigned rows and a few MiB a thread. Throws
/// UsageError and InputError; `out` is then unchanged.
PatchReport apply_expressions(const std::string& in, const std::string& out,
                              const std::vector<std::string>& programs,
                              const PatchRequest& request);

struct NormRequest : PatchRequest {
  std::optional<double> to;         ///< the norm; absent: the mean norm of the rows
  std::optional<std::string> rows;  ///< "5,10-20,king"; absent: all
};

struct NormReport : EditReport {
  std::string tensor;
  std::uint64_t rows = 0;       ///< scaled
  std::uint64_t zero_rows = 0;  ///< left alone, having no direction
  double norm = 0;
  double norm_before = 0;  ///< mean over the scaled rows
};

/// Writes `in` with rows of the input table scaled to one Euclidean norm. Otherwise as
/// apply_expressions.
NormReport scale_to_norm(const std::string& in, const std::string& out, const NormRequest& request);

}  // namespace masque::surgery
