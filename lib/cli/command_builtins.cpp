// What every command does by itself: help, version, manual page, completion, experiment files.
#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/edit_distance.hpp"
#include "base/thread/parallel.hpp"
#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/completion.hpp"
#include "cli/experiment.hpp"
#include "cli/man_page.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

namespace {

Entry builtin(std::string names, std::string help, std::vector<std::string> words = {}) {
  return {.names = std::move(names),
          .value = fmt::format("{}", fmt::join(words, "|")),
          .help = std::move(help),
          .initial = {},
          .words = words,
          .set = [](const std::string&) {}};
}

}  // namespace

std::vector<Entry> Command::entries() const {
  std::vector<Entry> all = entries_;
  if (experiment_ != ExperimentFile::kNone) {
    Entry file = builtin("--experiment",
                         "reads options from a file: lines 'key = value', keys without dashes");
    file.value = "FILE";
    all.push_back(file);
    all.push_back(builtin("--print-experiment",
                          "prints all options and values as an experiment file, and exits"));
    if (experiment_ == ExperimentFile::kArgument) {
      file.names = kFileArgument;
      file.value.clear();
      file.help = "experiment file, as for --experiment";
      file.positional = true;
      all.push_back(file);
    }
  }
  all.push_back(builtin("-h,--help", "prints examples, arguments and options"));
  if (parent_ != nullptr) return all;
  all.push_back(builtin("--version", "prints the version"));
  all.push_back(
      builtin("--man", "prints the manual page of all commands; read it with 'man -l -'"));
  all.push_back(
      builtin("--completion",
              "prints a completion script for this shell; hf: the names of the models in the local "
              "Hugging Face cache",
              completion_words()));
  return all;
}

std::string Command::builtin_text(const std::function<bool(const char*)>& given,
                                  const Typed& typed) const {
  if (given("--help")) return help();
  if (parent_ != nullptr) return "";
  if (given("--version")) {
    std::string text = fmt::format("{} (masque) {}\n", name_, kVersion);
    for (const auto& line : version_lines_) text += line() + "\n";
    return text;
  }
  if (given("--man")) return man_page(*this);
  if (!given("--completion")) return "";
  return completion(*this,
                    find_word("--completion", completion_words(), typed("--completion").back()));
}

// The text of --help, from the same declarations that parsing follows.

namespace {

void append_wrapped(std::string& out, const std::string& left, const std::string& text) {
  constexpr std::size_t kColumn = 28;
  constexpr std::size_t kWidth = 100;
  std::string line = fmt::format("  {}", left);
  if (line.size() + 2 > kColumn) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kColumn, ' ');
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() + end - at > kWidth && line.size() > kColumn) {
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
      line.assign(kColumn, ' ');
    }
    line += text.substr(at, end - at) + " ";
    at = end + 1;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

}  // namespace

std::string Command::help() const {
  const std::vector<Entry> all = entries();
  std::string out;
  if (!examples_.empty()) {
    out += "Examples:\n";
    for (const auto& [command_line, what] : examples_) {
      out += fmt::format("  {}\n      {}\n", command_line, what);
    }
    out += "\n";
  }
  out += fmt::format("{}: {}\n\nUsage: {}", full_name(), summary_, full_name());
  if (!subcommands_.empty() && !action_) out += " COMMAND …";
  for (const Entry& entry : all) {
    if (!entry.positional) continue;
    const std::string name = entry.names + (entry.repeated ? "…" : "");
    out += entry.required ? " " + name : fmt::format(" [{}]", name);
  }
  for (const Entry& entry : all) {
    if (!entry.positional && entry.required) {
      out += fmt::format(" {} {}", entry.spellings().front(), entry.value);
    }
  }
  out += subcommands_.empty() || action_ ? " [OPTIONS]\n" : "\n";
  if (!subcommands_.empty() && action_) out += fmt::format("   or: {} COMMAND …\n", full_name());
  if (!subcommands_.empty()) {
    out += "\nCommands:\n";
    for (const auto& child : subcommands_) append_wrapped(out, child->name_, child->summary_);
  }
  const auto section = [&](const char* title, bool positional) {
    bool first = true;
    for (const Entry& entry : all) {
      if (entry.positional != positional) continue;
      if (std::exchange(first, false)) out += fmt::format("\n{}:\n", title);
      std::string left = fmt::format("{}", fmt::join(entry.spellings(), ", "));
      if (!entry.value.empty()) left += " " + entry.value;
      append_wrapped(
          out, left,
          entry.initial.empty() ? entry.help : fmt::format("{} [{}]", entry.help, entry.initial));
    }
  };
  section("Arguments", true);
  section("Options", false);
  if (!subcommands_.empty())
    out += fmt::format("\n'{} COMMAND --help' shows the options of a command.\n", full_name());
  out +=
      "\nExit codes: 0 success; 1 success, and the answer is no; 2 wrong command line; 3 bad input "
      "or a failed "
      "system call; 4 a bug.\n";
  return out;
}

// The experiment files of a command: its options as lines `key = value`.

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
  if (const auto problem = usage_error_message([&] { entry.set(as_read(entry, setting.value)); }))
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
