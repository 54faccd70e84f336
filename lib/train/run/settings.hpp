// Settings of a run that goes on, compared with those it began with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace masque::train {

/// Names and values, in a fixed order.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Says which of `settings` differ from the saved ones, all of them in one line; nothing if none
/// does. `saved` gives the saved value of a name, nothing where there is none.
std::optional<std::string> changed_settings(
    const Settings& settings,
    const std::function<std::optional<std::string>(const std::string& name)>& saved);

}  // namespace masque::train
