#include "base/string/name_table.hpp"

#include <string>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/edit_distance.hpp"

namespace masque {

void refuse_name(std::string_view field_name, std::string_view found,
                 std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list += fmt::format("{}{}", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  throw UsageError(fmt::format("{}: found '{}', expected {}{}", field(field_name), escape(found),
                               list, did_you_mean(found, names)));
}

}  // namespace masque
