#include "surgery/positions/position_extension.hpp"

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "base/registry.hpp"
#include "base/split.hpp"

namespace masque::surgery {

namespace {

using Extensions = Registry<PositionExtensionInfo>;

}  // namespace

PositionExtensionRegistration::PositionExtensionRegistration(const PositionExtensionInfo& info) {
  Extensions::of_process().add(std::make_unique<const PositionExtensionInfo>(info));
}

std::span<const PositionExtensionInfo* const> position_extensions() {
  return Extensions::of_process().all();
}

std::string position_extension_spellings() {
  return comma_list(position_extensions(), [](const PositionExtensionInfo* info) {
    return fmt::format("{}{}", info->name,
                       info->argument.empty() ? "" : fmt::format("[:{}]", info->argument));
  });
}

std::unique_ptr<const PositionExtension> parse_position_extension(std::string_view text) {
  const auto [name, value] = split_at_first(text, ':');
  const PositionExtensionInfo* found = Extensions::of_process().find(name);
  if (found == nullptr) {
    throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("how"), escape(text),
                                 position_extension_spellings()));
  }
  std::optional<double> argument;
  if (value) {
    argument = parse_number<double>(*value);
    if (found->argument.empty() || !argument) {
      throw UsageError(fmt::format("{}: found '{}', expected {}", field("how"), escape(text),
                                   found->argument.empty()
                                       ? std::string(found->name)
                                       : fmt::format("a number after '{}:'", found->name)));
    }
  }
  return found->make(argument);
}

}  // namespace masque::surgery
