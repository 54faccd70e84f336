// Numbers as results show them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/run_tool.hpp"
#include "kernel/precision.hpp"

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

 private:
  std::optional<std::int64_t> digits_;  ///< nothing: what a double needs
};

/// Declares --digits of `command`, from 1 to 17; `digits` is its target.
void add_digits(cli::Command& command, std::optional<std::int64_t>& digits);

}  // namespace masque::commands
