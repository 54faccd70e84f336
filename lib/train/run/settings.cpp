#include "train/run/settings.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::train {

namespace {

/// A digest only shows that something differs.
bool is_digest(const std::string& value) {
  constexpr std::size_t kDigits = 32;
  return value.size() == kDigits && value.find_first_not_of("0123456789abcdef") == value.npos;
}

}  // namespace

std::optional<std::string> changed_settings(
    const Settings& settings,
    const std::function<std::optional<std::string>(const std::string& name)>& saved) {
  std::string list, others;
  for (const auto& [name, value] : settings) {
    const std::string was = saved(name).value_or("absent");
    if (was == value) continue;
    if (is_digest(value) || is_digest(was)) {
      others += fmt::format("{}another {}", others.empty() ? "" : ", ", name);
      continue;
    }
    list +=
        fmt::format("{}{} {} (now {})", list.empty() ? "" : ", ", name, escape(was), escape(value));
  }
  // What follows from readable settings needs no word.
  if (list.empty()) list = others;
  if (list.empty()) return std::nullopt;
  return fmt::format("the run used {}; {} cannot change settings: repeat the options of the run",
                     list, field("resume"));
}

}  // namespace masque::train
