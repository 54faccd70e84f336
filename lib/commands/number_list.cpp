#include "commands/number_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"

namespace masque::commands {

std::vector<double> parse_numbers(std::string_view name, std::string_view list, double least,
                                  double most, Repeats repeats) {
  std::vector<double> numbers;
  for (const std::string_view part : split(list, ',')) {
    const auto value = parse_number<double>(part);
    if (!value || !(*value >= least && *value <= most)) {
      throw UsageError(
          fmt::format("{}: found '{}', expected numbers from {} to {}, separated by commas",
                      field(name), escape(part), least, most));
    }
    if (repeats == Repeats::kRefused && std::ranges::find(numbers, *value) != numbers.end())
      throw UsageError(
          fmt::format("{}: found {} twice, expected different numbers", field(name), *value));
    numbers.push_back(*value);
  }
  return numbers;
}

}  // namespace masque::commands
