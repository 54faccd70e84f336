#include "commands/number_list.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"

namespace masque::commands {

std::vector<double> parse_numbers(std::string_view option, const std::string& list, double least,
                                  double most) {
  std::vector<double> numbers;
  for (const std::string_view part : split(list, ',')) {
    const auto value = parse_number<double>(part);
    if (!value || !(*value >= least && *value <= most)) {
      throw UsageError(fmt::format("{}: found '{}', expected numbers from {} to {} with commas",
                                   option, escape(part), least, most));
    }
    numbers.push_back(*value);
  }
  return numbers;
}

}  // namespace masque::commands
