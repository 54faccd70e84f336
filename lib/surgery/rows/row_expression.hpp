// A small language for arithmetic on rows of a table.
//
//   program    = assignment { ";" assignment }
//   assignment = row "=" sum                      a bare word is a row, too, on the left
//   sum        = product { ("+" | "-") product }
//   product    = factor { ("*" | "/") factor }
//   factor     = "-" factor | number | row | "(" sum ")" | function "(" sum { "," sum } ")"
//   function   = "mean" | "sum" | "unit" | "norm"
//   row        = "[" token "]" | '"' token '"' | "'" token "'" | "#" id
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

/// Rows of a table as assignments leave them, in double precision. For one thread.
///
/// Assignments run in order, each on what the earlier ones left. Brackets in a name come in pairs;
/// [MASK] is the token MASK or, if there is none, the token [MASK], and an error if there are both:
/// "[MASK]" and [[MASK]] are the second one. In quotes a backslash makes the next byte itself.
/// Numbers and rows do not mix in sums; of two rows there is no product and no quotient. unit(x) is
/// x/‖x‖, norm(x) the number ‖x‖.
class RowExpressions {
 public:
  /// For the rows of `table` [rows, width] of `checkpoint`, which tokens of `names` name. The
  /// arguments must outlive this.
  RowExpressions(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                 const TokenNames& names)
      : checkpoint_(&checkpoint), table_(&table), names_(&names) {}

  /// Runs the program `text`. Throws UsageError "'TEXT': byte N: …" (counted from 1) for what is
  /// wrong in it, rows that do not exist and divisions by zero included. The assignments before it
  /// stay.
  void run(std::string_view text);

  /// The rows that were assigned to, by id, with their values, [width].
  const std::map<std::uint64_t, std::vector<double>>& rows() const { return rows_; }

 private:
  friend class RowProgram;

  const store::Checkpoint* checkpoint_;
  const store::TensorInfo* table_;
  const TokenNames* names_;
  std::map<std::uint64_t, std::vector<double>> rows_;
};

/// The row of `token_or_id`: an id if it is a whole number, else a token of `names`. Throws
/// InputError naming `path` if there is no such row below `rows`.
std::uint64_t find_row(const std::string& token_or_id, const TokenNames& names, std::uint64_t rows,
                       const std::string& path);

}  // namespace masque::surgery
