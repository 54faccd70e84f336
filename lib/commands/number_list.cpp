#include "commands/number_list.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::commands {

std::vector<double> parse_numbers(std::string_view option, const std::string& list, double least,
                                  double most) {
  std::vector<double> numbers;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    double value = 0;
    const auto [at, error] = std::from_chars(list.data() + begin, list.data() + end, value);
    if (error != std::errc{} || at != list.data() + end || !(value >= least && value <= most)) {
      throw UsageError(fmt::format("{}: found '{}', expected numbers from {} to {} with commas",
                                   option, escape(list.substr(begin, end - begin)), least, most));
    }
    numbers.push_back(value);
    if (end == list.size()) return numbers;
    begin = end + 1;
  }
}

}  // namespace masque::commands
