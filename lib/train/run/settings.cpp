#include "train/run/settings.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::train {

std::optional<std::string> changed_settings(
    const Settings& settings,
    const std::function<std::optional<std::string>(const std::string& name)>& saved) {
  std::string list;
  for (const auto& [name, value] : settings) {
    const std::string was = saved(name).value_or("absent");
    if (was == value) continue;
    list +=
        fmt::format("{}{} {} (now {})", list.empty() ? "" : ", ", name, escape(was), escape(value));
  }
  if (list.empty()) return std::nullopt;
  return fmt::format("the run used {}; {} cannot change settings", list, field("resume"));
}

}  // namespace masque::train
