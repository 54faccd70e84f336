#include "commands/result_format.hpp"

#include <cmath>

#include <fmt/format.h>

namespace masque::commands {

ResultFormat ResultFormat::of(kernel::Precision precision,
                              const std::optional<std::int64_t>& digits) {
  ResultFormat format;
  format.digits_ = digits;
  if (!digits && precision != kernel::Precision::kF64) format.digits_ = 9;
  return format;
}

std::string ResultFormat::text(double value) const {
  return digits_ ? fmt::format("{:.{}g}", value, *digits_) : fmt::format("{}", value);
}

std::string ResultFormat::json(double value) const {
  return std::isfinite(value) ? text(value) : "null";
}

void add_digits(cli::Command& command, std::optional<std::int64_t>& digits) {
  command.option("--digits", "N", digits, cli::AllowedRange{1, 17},
                 "significant digits of results [9; with f64, as many as a double needs]");
}

}  // namespace masque::commands
