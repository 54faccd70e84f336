#include "base/string/name_table.hpp"

#include <string>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/edit_distance.hpp"

namespace masque {

void refuse_name(std::string_view field_name, std::string_view found,
                 std::span<const std::string_view> names) {
  throw UsageError(fmt::format("{}: found '{}', expected {}{}", field(field_name), escape(found),
                               or_list(names), did_you_mean(found, names)));
}

}  // namespace masque
