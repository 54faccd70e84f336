#include "base/string/name_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"

namespace masque {

std::vector<std::string> split_names(std::string_view name, std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view part : split_outside_parentheses(text, ','))
    names.emplace_back(trim(part));
  for (const std::string& one : names) {
    if (one.empty() || std::ranges::count(names, one) > 1) {
      throw UsageError(fmt::format("{}: found '{}', expected different names separated by commas",
                                   field(name), escape(text)));
    }
  }
  return names;
}

}  // namespace masque
