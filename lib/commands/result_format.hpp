// Numbers as results show them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "base/types.hpp"
#include "cli/run_tool.hpp"
#include "kernel/number/precision.hpp"

namespace masque::commands {

/// Significant digits: as many as it takes to read the same number again, or fewer.
class ResultFormat {
 public:
  /// `digits` digits; without a value 9, which tell any two numbers of f32 and bf16 models apart,
  /// or with kF64 as `precision` as many as a double needs.
  static ResultFormat of(kernel::Precision precision, const std::optional<std::int64_t>& digits);

  /// `value` in decimal; "nan", "inf" and "-inf" where that is what it is.
  std::string text(double value) const;
  /// `value` for JSON: as text(), but null where it is not finite.
  std::string json(double value) const;
  /// `value` as text() and json() give it.
  cli::Cell cell(double value) const { return cli::Cell::raw(text(value), json(value)); }
  /// The same; NaN if there is no `value`.
  cli::Cell cell(std::optional<double> value) const {
    return cell(value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }

 private:
  std::optional<std::int64_t> digits_;  ///< nothing: what a double needs
};

/// Returns the line of a vector: `numbers` as `format` shows them, as TSV or, if `options` say so,
/// CSV.
std::string vector_line(std::span<const double> numbers, const ResultFormat& format,
                        const cli::CommonOptions& options);

/// Prints to `session` the header of `width` numbers, v0, v1, …, if `options` say CSV and
/// has_header is true: TSV of vectors has none.
void print_vector_header(Index width, bool has_header, const cli::CommonOptions& options,
                         cli::Session& session);

/// Declares --csv and --no-header of a `command` that prints vectors, in `options`: --no-header
/// needs
/// --csv.
void add_vector_csv(cli::Command& command, cli::CommonOptions& options);

/// Declares --digits of `command`, from 1 to 17; `digits` is its target.
void add_digits(cli::Command& command, std::optional<std::int64_t>& digits);

}  // namespace masque::commands
