#include "train/run/settings.hpp"

#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"

namespace masque::train {

namespace {

/// A digest only shows that something differs.
bool is_digest(const std::string& value) {
  constexpr std::size_t kDigits = 32;
  return value.size() == kDigits && value.find_first_not_of("0123456789abcdef") == value.npos;
}

/// A value as messages show it: a mask in a config.json may have a million characters.
std::string shown_setting(const std::string& value) {
  constexpr std::size_t kMost = 80;
  if (value.size() <= kMost) return escape(value);
  return escape(std::string_view(value).substr(0, kMost)) + "…";
}

std::string place_of(const std::vector<JsonStep>& path) {
  std::string place;
  for (const JsonStep& step : path) {
    if (!step.in_object) {
      place += fmt::format("[{}]", step.index);
    } else {
      place += (place.empty() ? "" : ".") + step.key;
    }
  }
  return place;
}

}  // namespace

Settings config_settings(const std::string& config, const std::string& path) {
  Settings settings;
  const auto error = scan_json_leaves(config, [&](const std::vector<JsonStep>& steps, JsonKind kind,
                                                  const std::string& text, std::size_t /*begin*/) {
    settings.emplace_back(place_of(steps), kind == JsonKind::kArray    ? "[]"
                                           : kind == JsonKind::kObject ? "{}"
                                                                       : text);
    return true;
  });
  if (error) throw InputError(path, fmt::format("byte {}: {}", error->offset, error->message));
  return settings;
}

std::optional<std::string> changed_settings(const Settings& now, const Settings& before) {
  const std::map<std::string, std::string> known(now.begin(), now.end());
  const std::map<std::string, std::string> saved(before.begin(), before.end());
  Settings all = now;
  for (const auto& [name, value] : before) {
    if (!known.contains(name)) all.emplace_back(name, "absent");
  }
  return changed_settings(all, [&](const std::string& name) {
    const auto found = saved.find(name);
    return found == saved.end() ? std::nullopt : std::optional(found->second);
  });
}

std::optional<std::string> changed_settings(
    const Settings& settings,
    const std::function<std::optional<std::string>(const std::string& name)>& saved) {
  // A design of another family has other keys throughout.
  constexpr std::size_t kMostShown = 6;
  std::size_t count = 0;
  std::string list, others;
  for (const auto& [name, value] : settings) {
    const std::string was = saved(name).value_or("absent");
    if (was == value) continue;
    if (is_digest(value) || is_digest(was)) {
      others += fmt::format("{}another {}", others.empty() ? "" : ", ", name);
      continue;
    }
    if (++count > kMostShown) continue;
    list += fmt::format("{}{} {} (now {})", list.empty() ? "" : ", ", escape(name),
                        shown_setting(was), shown_setting(value));
  }
  if (count > kMostShown) list += fmt::format(" and {} more", count - kMostShown);
  // What follows from readable settings needs no word.
  if (list.empty()) list = others;
  if (list.empty()) return std::nullopt;
  return fmt::format("the run used {}; {} cannot change settings: repeat the options of the run",
                     list, field("resume"));
}

}  // namespace masque::train
