#include "commands/result_format.hpp"

#include <cmath>
#include <vector>

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

std::string vector_line(std::span<const double> numbers, const ResultFormat& format,
                        const cli::CommonOptions& options) {
  std::string line;
  for (const double x : numbers) {
    if (!line.empty()) line += options.csv ? ',' : '\t';
    line += options.csv && !std::isfinite(x) ? format.cell(x).csv(false) : format.text(x);
  }
  return line + "\n";
}

void print_vector_header(Index width, bool has_header, const cli::CommonOptions& options,
                         cli::Session& session) {
  if (!options.csv || !has_header) return;
  std::vector<std::string> columns;
  for (Index i = 0; i < width; ++i) columns.push_back(fmt::format("v{}", i));
  session.print(cli::header_line(session, options, columns));
}

void add_vector_csv(cli::Command& command, cli::CommonOptions& options) {
  cli::add_csv(command, options);
  command.read_only_if(
      {"no-header"}, [&options] { return options.csv; },
      "without --csv: other vectors have no header");
}

void add_digits(cli::Command& command, std::optional<std::int64_t>& digits) {
  command.option("--digits", "N", digits, cli::AllowedRange{1, 17},
                 "significant digits of results [9; with f64, as many as a double needs]");
}

}  // namespace masque::commands
