#include "cli/experiment.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/parallel.hpp"
#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;
constexpr const char* kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

bool is_blank(char c) { return std::string_view(kBlanks).find(c) != std::string_view::npos; }

/// Without its comment.
std::string_view said(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || is_blank(line[i - 1]))) return line.substr(0, i);
  }
  return line;
}

/// A message about an option, as one about its key: "--steps: …" → "steps: …".
std::string about_key(std::string message) {
  if (message.starts_with("--")) message.erase(0, 2);
  return message;
}

bool is_name(char c) { return c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether a text is an option's name and no more.
bool is_option(const std::string& text) {
  return text.starts_with("--") && std::ranges::all_of(text, is_name);
}

/// Where a message names an option; npos: nowhere.
std::size_t mention_of(const std::string& option, const std::string& message) {
  for (std::size_t at = message.find(option); at != std::string::npos;
       at = message.find(option, at + 1)) {
    const std::size_t end = at + option.size();
    if ((at == 0 || !is_name(message[at - 1])) && (end == message.size() || !is_name(message[end])))
      return at;
  }
  return std::string::npos;
}

}  // namespace

std::vector<Setting> read_settings(const std::string& path) {
  const std::string text = read_text(path, kMostBytes);
  std::vector<Setting> settings;
  std::string_view rest = text;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(said(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    const std::size_t equals = line.find('=');
    const std::string_view key = trimmed(line.substr(0, std::min(equals, line.size())));
    if (equals == std::string_view::npos || key.empty())
      throw InputError(place, fmt::format("found '{}', expected key = value", escape(line)));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (value.empty())
      throw InputError(place, fmt::format("{}: no value, expected one", escape(key)));
    settings.push_back({std::string(key), std::string(value), place});
  }
  return settings;
}

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
      throw InputError(at->place, fmt::format("no option '{}'{}", escape(at->key),
                                              did_you_mean(at->key, {keys.begin(), keys.end()})));
    }
    const Entry& entry = entries_[static_cast<std::size_t>(found - keys.begin())];
    const auto first = std::ranges::find(settings.begin(), at, at->key, &Setting::key);
    if (first != at && !entry.repeated) {
      throw InputError(at->place, fmt::format("{} is at {} already, expected it once", at->key,
                                              escape(first->place)));
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
    throw InputError(setting.place, fmt::format("{}: found '{}', expected true or false",
                                                setting.key, escape(setting.value)));
  }
  // A value that the command line replaces is still checked; a list would keep it.
  if ((entry.is_flag() && setting.value == "false") || (replaced && entry.repeated)) return;
  if (const auto problem = usage_problem_of([&] { entry.set(setting.value); }))
    throw InputError(setting.place, about_key(*problem));
  if (!replaced) from_file_.push_back(setting);
}

ExitCode Command::run(Session& session) const {
  if (from_file_.empty()) return action_(session);
  ExitCode code = ExitCode::kDone;
  const auto problem = usage_problem_of([&] { code = action_(session); });
  if (!problem) return code;
  // Some values can be judged only by the command: "--eval-lengths: found …". Of several options in
  // a message the first one from the file is meant, unless what was found is another one's value.
  const Setting* meant = nullptr;
  std::size_t first = std::string::npos;
  for (const Setting& setting : from_file_) {
    const std::size_t at = mention_of("--" + setting.key, *problem);
    if (at >= first) continue;
    first = at;
    meant = &setting;
  }
  const std::string culprit = problem->substr(0, problem->find(": found "));
  const bool is_other = culprit.size() < problem->size() && is_option(culprit) && first != 0;
  if (meant == nullptr || is_other) throw UsageError(*problem);
  throw InputError(meant->place, first == 0 ? about_key(*problem) : *problem);
}

std::string Command::experiment_text(const Typed& typed) const {
  std::string text = fmt::format("# {} (masque {})\n", full_name(), kVersion);
  for (const Entry& entry : entries_) {
    const std::string key = key_of(entry);
    std::vector<std::string> values = typed(entry.spellings().front());
    if (entry.is_flag() && !values.empty()) values = {"true"};
    if (!values.empty() && !entry.repeated) values = {values.back()};
    for (const Setting& setting : from_file_) {
      if (setting.key == key) values.push_back(setting.value);
    }
    if (values.empty() && entry.is_flag()) values = {"false"};
    if (values.empty() && !entry.initial.empty()) values = {entry.initial};
    if (values.empty())
      text += fmt::format("# {} = {}\n", key, entry.positional ? entry.names : entry.value);
    for (const std::string& value : values) {
      if (value.empty() || value.find('\n') != std::string::npos || trimmed(said(value)) != value) {
        throw UsageError(
            fmt::format("{}: '{}' cannot be a value in an experiment file", key, escape(value)));
      }
      text += fmt::format("{} = {}\n", key, value);
    }
  }
  return text;
}

}  // namespace masque::cli
