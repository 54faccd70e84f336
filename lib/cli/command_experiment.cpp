// The experiment files of a command: its options as lines `key = value`.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parallel.hpp"
#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/experiment.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

std::string key_of(const Entry& entry) {
  if (!entry.positional) return long_name(entry.names).substr(2);
  std::string key = entry.names;
  std::ranges::transform(key, key.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return key;
}

Command& Command::experiment(ExperimentFile how) {
  experiment_ = how;
  return *this;
}

Command& Command::one_of(std::vector<std::string> names) {
  one_of_.push_back(std::move(names));
  return *this;
}

void refuse_unread(std::string_view option, std::string_view because) {
  throw UsageError(fmt::format("{} has no effect {}; remove it", field(option), because));
}

Command& Command::read_only_if(std::vector<std::string> options, std::function<bool()> holds,
                               std::string because) {
  conditions_.push_back({std::move(options), std::move(holds), std::move(because)});
  return *this;
}

void Command::refuse_unread() const {
  for (const Condition& condition : conditions_) {
    for (const std::string& option : condition.options) {
      if (is_requested(option) && !condition.holds()) cli::refuse_unread(option, condition.because);
    }
  }
}

bool Command::is_set(std::string_view option) const {
  return std::ranges::find(set_, option) != set_.end();
}

bool Command::is_requested(std::string_view option) const {
  const auto setting = std::ranges::find(from_file_, option, &Setting::key);
  if (setting == from_file_.end()) return is_set(option);
  const auto entry =
      std::ranges::find_if(entries_, [&](const Entry& one) { return key_of(one) == option; });
  return entry == entries_.end() || entry->initial != setting->value;
}

void Command::read_experiment(const Typed& typed) {
  std::vector<std::string> files;
  if (experiment_ != ExperimentFile::kNone) files = typed("--experiment");
  if (experiment_ == ExperimentFile::kArgument) {
    for (const std::string& file : typed(kFileArgument)) files.push_back(file);
  }
  if (files.empty()) return;
  if (files.size() > 1)
    throw UsageError(fmt::format("found {} experiment files, expected one", files.size()));
  std::vector<std::string> keys;
  keys.reserve(entries_.size());
  for (const Entry& entry : entries_) keys.push_back(key_of(entry));
  const std::vector<Setting> settings = read_settings(files.front());
  for (auto at = settings.begin(); at != settings.end(); ++at) {
    const auto found = std::ranges::find(keys, at->key);
    if (found == keys.end()) {
      throw InputError(at->location,
                       fmt::format("no option '{}'{}", escape(at->key),
                                   did_you_mean(at->key, std::vector<std::string_view>(
                                                             keys.begin(), keys.end()))));
    }
    const Entry& entry = entries_[static_cast<std::size_t>(found - keys.begin())];
    const auto first = std::ranges::find(settings.begin(), at, at->key, &Setting::key);
    if (first != at && !entry.repeated) {
      throw InputError(at->location, fmt::format("{} is already set at {}, expected once", at->key,
                                                 escape(first->location)));
    }
    set_from_file(*at, entry, typed);
  }
}

void Command::set_from_file(const Setting& setting, const Entry& entry, const Typed& typed) {
  const auto is_typed = [&](const std::string& name) { return !typed(name).empty(); };
  const bool replaced = is_typed(entry.spellings().front());
  for (const std::vector<std::string>& names : one_of_) {
    if (std::ranges::find(names, long_name(entry.names)) == names.end()) continue;
    if (!replaced && std::ranges::any_of(names, is_typed)) return;
  }
  if (entry.is_flag() && setting.value != "true" && setting.value != "false") {
    throw InputError(setting.location, fmt::format("{}: found '{}', expected true or false",
                                                   setting.key, escape(setting.value)));
  }
  // A value that the command line replaces is still checked; a list would keep it.
  if ((entry.is_flag() && setting.value == "false") || (replaced && entry.repeated)) return;
  if (const auto problem = usage_error_message([&] { entry.set(setting.value); }))
    throw InputError(setting.location,
                     spell_fields(*problem, [](auto name) { return key_of(name); }));
  if (!replaced) from_file_.push_back(setting);
}

ExitCode Command::run(Session& session) const {
  const auto act = [&] {
    refuse_unread();
    return action_(session);
  };
  if (from_file_.empty()) return act();
  ExitCode code = ExitCode::kDone;
  const auto problem = usage_error_message([&] { code = act(); });
  if (!problem) return code;
  // Some values can be judged only by the command. Of several fields the first one from the file is
  // meant, unless the message is about one that is not.
  const auto setting_of = [&](std::string_view name) {
    return std::ranges::find(from_file_, key_of(name), &Setting::key);
  };
  const std::vector<std::string> names = fields_of(*problem);
  const auto has_setting = [&](std::string_view name) {
    return setting_of(name) != from_file_.end();
  };
  const auto meant = std::ranges::find_if(names, has_setting);
  const bool is_other = meant != names.begin() && problem->starts_with(field(names.front()) + ":");
  if (meant == names.end() || is_other) throw UsageError(*problem);
  throw InputError(setting_of(*meant)->location, spell_fields(*problem, [&](std::string_view name) {
                     return has_setting(name) ? key_of(name) : option_of(name);
                   }));
}

std::vector<std::string> Command::given_values(const Entry& entry, const Typed& typed) const {
  std::vector<std::string> values = typed(entry.spellings().front());
  if (entry.is_flag() && !values.empty()) values = {"true"};
  if (!values.empty() && !entry.repeated) values = {values.back()};
  const std::string key = key_of(entry);
  for (const Setting& setting : from_file_) {
    if (setting.key == key) values.push_back(setting.value);
  }
  return values;
}

std::string Command::experiment_text(const Typed& typed) const {
  std::string text = fmt::format("# {} (masque {})\n", full_name(), kVersion);
  for (const Entry& entry : entries_) {
    const std::string key = key_of(entry);
    std::vector<std::string> values = given_values(entry, typed);
    if (values.empty() && entry.is_flag()) values = {"false"};
    if (values.empty() && !entry.initial.empty()) values = {entry.initial};
    if (values.empty())
      text += fmt::format("# {} = {}\n", key, entry.positional ? entry.names : entry.value);
    for (const std::string& value : values) {
      if (!is_setting_value(value)) {
        throw UsageError(
            fmt::format("{}: '{}' cannot be a value in an experiment file", key, escape(value)));
      }
      text += fmt::format("{} = {}\n", key, value);
    }
  }
  return text;
}

}  // namespace masque::cli
