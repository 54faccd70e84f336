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
  /// Nine digits tell any two numbers of f32 and bf16 models apart.
  static ResultFormat of(kernel::Precision precision, const std::optional<std::int64_t>& digits);

  /// "nan" and "inf" where that is what it is.
  std::string text(double value) const;
  /// The same for JSON, where those are null.
  std::string json(double value) const;
  cli::Cell cell(double value) const { return cli::Cell::raw(text(value), json(value)); }

 private:
  std::optional<std::int64_t> digits_;  ///< nothing: what a double needs
};

/// --digits.
void add_digits(cli::Command& command, std::optional<std::int64_t>& digits);

}  // namespace masque::commands
