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

/// The members of `config`, the text of a config.json, in their order: that of an object by the
/// names on the way to it ("changes.normalizer"), that of a list by its number ("layers[0]").
/// `path` is for messages. Throws InputError for a text that is no JSON.
Settings config_settings(const std::string& config, const std::string& path);

/// Says which settings of `now` and `before` differ, those too that only one of them has, in one
/// line; nothing if none does. Cost O(n log n).
std::optional<std::string> changed_settings(const Settings& now, const Settings& before);

/// Says which of `settings` differ from the saved ones, all of them in one line; nothing if none
/// does. `saved` gives the saved value of a name, nothing where there is none.
std::optional<std::string> changed_settings(
    const Settings& settings,
    const std::function<std::optional<std::string>(const std::string& name)>& saved);

}  // namespace masque::train
