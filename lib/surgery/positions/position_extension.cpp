#include "surgery/positions/position_extension.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque {

namespace {

std::vector<PositionExtensionInfo>& registry() {
  static std::vector<PositionExtensionInfo> all;
  return all;
}

std::string possible() {
  std::string list;
  for (const PositionExtensionInfo& info : registry()) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", info.name);
    if (!info.argument.empty()) list += fmt::format("[:{}]", info.argument);
  }
  return list;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

PositionExtensionRegistration::PositionExtensionRegistration(const PositionExtensionInfo& info) {
  auto& all = registry();
  all.insert(std::ranges::upper_bound(all, info.name, {}, &PositionExtensionInfo::name), info);
}

const std::vector<PositionExtensionInfo>& position_extensions() { return registry(); }

std::unique_ptr<const PositionExtension> parse_position_extension(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto found =
      std::ranges::find(registry(), text.substr(0, colon), &PositionExtensionInfo::name);
  if (found == registry().end()) {
    throw UsageError(
        fmt::format("{} '{}': expected one of {}", field("how"), escape(text), possible()));
  }
  std::optional<double> argument;
  if (colon != std::string_view::npos) {
    argument = number_of(text.substr(colon + 1));
    if (found->argument.empty() || !argument) {
      throw UsageError(fmt::format("{} '{}': expected {}", field("how"), escape(text),
                                   found->argument.empty()
                                       ? std::string(found->name)
                                       : fmt::format("a number behind '{}:'", found->name)));
    }
  }
  return found->make(argument);
}

}  // namespace masque
