#include "cli/command.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/edit_distance.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/version.hpp"
#include "cli/experiment.hpp"
#include "cli/hub_cache.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

namespace {

// CLI11 splits the command line; what it finds is set, checked and reported here, so that every
// message and every help text reads the same.

// Characters that no user types. The first keeps CLI11 from looking for an option after "--", and
// from taking the next argument for the value of "--name="; the second is the value of a flag.
constexpr char kMark = '\x01';
constexpr char kFlagMark = '\x02';

std::string unmarked(std::string text) {
  if (text.starts_with(kMark)) {
    text.erase(0, 1);
  } else if (text.ends_with(std::string{'=', kMark})) {
    text.pop_back();
  }
  return text;
}

std::vector<std::string> marked(std::vector<std::string> arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  for (auto at = arguments.begin(); at != dashes; ++at) {
    if (at->starts_with("--") && at->ends_with('=')) at->push_back(kMark);
  }
  if (dashes == arguments.end()) return arguments;
  for (auto at = arguments.erase(dashes); at != arguments.end(); ++at) at->insert(0, 1, kMark);
  return arguments;
}

/// What CLI11 calls an entry: newer versions take no '=' in the name of an argument.
std::string parsed_name(const Entry& entry) {
  std::string name = entry.names;
  if (entry.positional) std::replace(name.begin(), name.end(), '=', '-');
  return name;
}

CLI::Option* attach(CLI::App& app, const Entry& entry) {
  if (entry.is_flag()) {
    std::string names;
    for (const std::string& name : entry.spellings()) {
      names += fmt::format("{}{}{{{}}}", names.empty() ? "" : ",", name, kFlagMark);
    }
    return app.add_flag(names);
  }
  // Results are read later, in order of declaration, after help had its turn.
  CLI::Option* option =
      app.add_option(parsed_name(entry), [](const CLI::results_t&) { return true; });
  option->expected(1);
  if (entry.repeated) {
    option->take_all();  // further positional values arrive as extras
  } else {
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  return option;
}

void refuse_value(const Entry& flag, const std::vector<std::string>& results) {
  for (const std::string& value : results) {
    if (value == std::string_view(&kFlagMark, 1)) continue;
    throw UsageError(fmt::format("{}: takes no value, found '{}'", long_name(flag.names),
                                 escape(unmarked(value))));
  }
}

// The kinds of options and arguments that a command can declare.

template <class T>
T number_or_throw(const std::string& name, const std::string& text, const char* expected) {
  if (const auto value = parse_number<T>(text)) return *value;
  throw UsageError(fmt::format("{}: found '{}', expected {}", name, escape(text), expected));
}

template <class T>
T parse_in(const std::string& name, const std::string& text, AllowedRange range,
           const char* expected) {
  const T value = number_or_throw<T>(name, text, expected);
  const auto as_double = static_cast<double>(value);
  if (!(as_double >= range.low && as_double <= range.high)) {
    const std::string limits = std::isinf(range.high)
                                   ? fmt::format("at least {}", range.low)
                                   : fmt::format("{} to {}", range.low, range.high);
    throw UsageError(fmt::format("{}: found {}, expected {}", name, text, limits));
  }
  return value;
}

/// Sets a target from text that is a number in a range.
template <class Number, class Target>
std::function<void(const std::string&)> setter(const std::string& names, Target& target,
                                               AllowedRange range) {
  return [&target, range, name = field_of(names)](const std::string& text) {
    constexpr bool kWhole = std::is_integral_v<Number>;
    target = parse_in<Number>(name, text, range, kWhole ? "a whole number" : "a number");
  };
}

/// A default of 0 says nothing.
std::string unless_zero(std::int64_t value) {
  return value == 0 ? std::string() : fmt::format("{}", value);
}

}  // namespace

std::vector<std::string> Entry::spellings() const {
  const auto [first, second] = split_at_first(names, ',');
  if (!second) return {names};
  return {std::string(first), std::string(*second)};
}

Command::Command(std::string name, std::string summary)
    : name_(std::move(name)), summary_(std::move(summary)) {}

Command::~Command() = default;

Command& Command::subcommand(std::string name, std::string summary) {
  auto& child =
      subcommands_.emplace_back(std::make_unique<Command>(std::move(name), std::move(summary)));
  child->parent_ = this;
  return *child;
}

Command& Command::example(std::string command_line, std::string what) {
  examples_.emplace_back(std::move(command_line), std::move(what));
  return *this;
}

Command& Command::add(Entry entry) {
  entries_.push_back(std::move(entry));
  return *this;
}

Command& Command::elsewhere(std::string other, std::string here) {
  elsewhere_.emplace_back(std::move(other), std::move(here));
  return *this;
}

Command& Command::reads_standard_input() {
  reads_standard_input_ = true;
  return *this;
}

Command& Command::version_line(std::function<std::string()> line) {
  version_lines_.push_back(std::move(line));
  return *this;
}

Command& Command::action(std::function<ExitCode(Session&)> run) {
  action_ = std::move(run);
  return *this;
}

std::string Command::full_name() const {
  return parent_ == nullptr ? name_ : fmt::format("{} {}", parent_->full_name(), name_);
}

Command* Command::find_subcommand(const std::string& word) const {
  std::vector<std::string_view> names;
  for (const auto& child : subcommands_) {
    if (child->name_ == word) return child.get();
    names.emplace_back(child->name_);
  }
  // A command that acts by itself takes any other word as its own.
  if (word.starts_with('-') || action_) return nullptr;
  if (parent_ == nullptr)
    throw UsageError(fmt::format("no command '{}'{}", escape(word), did_you_mean(word, names)));
  throw UsageError(fmt::format("{}: no command '{}', expected {}{}", name_, escape(word),
                               fmt::join(names, ", "), did_you_mean(word, names)));
}

void Command::refuse_extras(const std::vector<std::string>& extras) const {
  const std::vector<Entry> all = entries();
  const bool last_is_repeated = std::any_of(all.begin(), all.end(), [](const Entry& entry) {
    return entry.positional && entry.repeated;
  });
  std::vector<std::string> known;
  for (const Entry& entry : all) {
    if (!entry.positional) known.push_back(long_name(entry.names));
  }
  for (const std::string& extra : extras) {
    if (extra.size() > 1 && extra.starts_with('-')) {
      const std::string word = extra.substr(0, extra.find('='));
      const auto other = std::ranges::find(elsewhere_, word, &Elsewhere::first);
      if (other != elsewhere_.end())
        throw UsageError(
            fmt::format("no option '{}'; did you mean '{}'?", escape(word), other->second));
      throw UsageError(fmt::format(
          "no option '{}'{}", escape(word),
          did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()))));
    }
    if (!last_is_repeated) {
      const std::string word = escape(unmarked(extra));
      throw UsageError(reads_standard_input_
                           ? fmt::format("unexpected argument '{}'; standard input is read, as in: "
                                         "{} … < {}",
                                         word, full_name(), word)
                           : fmt::format("unexpected argument '{}'", word));
    }
  }
}

const Command* Command::parse(const std::vector<std::string>& arguments, std::string& text) {
  if (!subcommands_.empty()) {
    if (arguments.empty() && !action_) {
      text = help();
      throw UsageError(
          fmt::format("no command, expected one of those in '{} --help'", full_name()));
    }
    Command* child = arguments.empty() ? nullptr : find_subcommand(arguments[0]);
    if (child != nullptr) {
      return child->parse({arguments.begin() + 1, arguments.end()}, text);
    }
  }
  given_ = arguments;
  const std::vector<Entry> all = entries();
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const Entry*, CLI::Option*>> options;
  options.reserve(all.size());
  for (const Entry& entry : all) options.emplace_back(&entry, attach(app, entry));
  std::vector<std::string> reversed = marked(arguments);
  std::reverse(reversed.begin(), reversed.end());
  app.parse(reversed);  // throws CLI::ParseError for an option without its value
  for (const auto& [entry, option] : options) {
    if (entry->is_flag()) refuse_value(*entry, option->results());
  }
  // CLI11's own search promises not to throw, and needs memory.
  const auto option_of = [&](std::string_view name) -> const CLI::Option* {
    for (const auto& [entry, option] : options) {
      const std::vector<std::string> spellings = entry->spellings();
      if (std::ranges::find(spellings, name) != spellings.end()) return option;
    }
    return nullptr;
  };
  const auto given = [&](const char* name) {
    const CLI::Option* option = option_of(name);
    return option != nullptr && option->count() > 0;
  };
  const Typed typed = [&](const std::string& name) {
    std::vector<std::string> values;
    const CLI::Option* option = option_of(name);
    MASQUE_CHECK(option != nullptr);
    for (const std::string& value : option->results()) values.push_back(unmarked(value));
    return values;
  };
  text = builtin_text(given, typed);
  if (!text.empty()) return nullptr;
  refuse_extras(app.remaining());
  read_experiment(typed);
  const bool prints = experiment_ != ExperimentFile::kNone && given("--print-experiment");
  for (const auto& [entry, option] : options) {
    const bool in_file =
        std::ranges::find(from_file_, key_of(*entry), &Setting::key) != from_file_.end();
    if (entry->required && option->count() == 0 && !in_file && !prints) {
      const std::string example =
          examples_.empty() ? "" : fmt::format(", as in: {}", examples_.front().first);
      throw UsageError(fmt::format("no {}{}{} (see '{} --help')", entry->spellings().front(),
                                   entry->positional ? "" : " " + entry->value, example,
                                   full_name()));
    }
    if (option->count() > 0 || in_file) set_.push_back(key_of(*entry));
    for (const std::string& value : option->results()) entry->set(as_read(*entry, unmarked(value)));
    if (!entry->positional || !entry->repeated) continue;
    for (const std::string& value : app.remaining()) entry->set(as_read(*entry, unmarked(value)));
  }
  for (const auto& [name, flag] : changes_) {
    if (!flag.empty() && !given(flag.c_str())) continue;
    for (const std::string& value : typed(name)) {
      if (is_hub_name(value))
        throw UsageError(
            fmt::format("{}: found '{}', expected another checkpoint to change: the "
                        "Hugging Face cache is only read",
                        name, escape(value)));
    }
  }
  std::vector<std::string> more;  // of a repeated argument
  for (const std::string& value : app.remaining()) more.push_back(unmarked(value));
  refuse_overwriting(typed, more);
  if (experiment_ != ExperimentFile::kNone) {
    for (const Entry& entry : entries_) {
      for (const std::string& value : given_values(entry, typed))
        settings_.push_back({key_of(entry), value, {}});
    }
  }
  if (prints) {
    text = experiment_text(typed);
    return nullptr;
  }
  if (!action_) throw UsageError(fmt::format("no command (see '{} --help')", full_name()));
  return this;
}

std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

std::string option_of(std::string_view field) { return "--" + key_of(field); }

std::string key_of(std::string_view field) {
  std::string key(field);
  std::ranges::replace(key, '_', '-');
  return key;
}

std::string with_options(std::string_view message) { return spell_fields(message, option_of); }

std::string message_line(const std::string& tool, std::string_view message) {
  constexpr std::size_t kMost = 2000;
  constexpr std::size_t kEnd = 300;
  // A last defence: what a file says is escaped where the message is made.
  std::string text = escape_hidden_characters(with_options(message));
  if (text.size() > kMost) {
    const auto starts_character = [&](std::size_t at) { return (text[at] & 0xC0) != 0x80; };
    std::size_t begin = kMost - kEnd;
    while (begin > 0 && !starts_character(begin)) --begin;
    std::size_t end = text.size() - kEnd;
    while (end < text.size() && !starts_character(end)) ++end;
    text.replace(begin, end - begin, " … ");
  }
  return fmt::format("{}: {}\n", tool, text);
}

std::string field_of(const std::string& names) {
  std::string name = long_name(names);
  if (!name.starts_with("--")) return name;
  name.erase(0, 2);
  std::ranges::replace(name, '-', '_');
  return field(name);
}

std::size_t find_word(const std::string& name, const std::vector<std::string>& words,
                      const std::string& text) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    throw UsageError(fmt::format(
        "{}: found '{}', expected one of {}{}", name, escape(text), fmt::join(words, ", "),
        did_you_mean(text, std::vector<std::string_view>(words.begin(), words.end()))));
  }
  return static_cast<std::size_t>(found - words.begin());
}

Command& Command::argument(std::string name, std::string& target, std::string help, Need need) {
  return add({.names = std::move(name),
              .value = {},
              .help = std::move(help),
              .initial = {},
              .words = {},
              .positional = true,
              .required = need == Need::kRequired,
              .set = [&target](const std::string& text) { target = text; }});
}

Command& Command::arguments(std::string name, std::vector<std::string>& target, std::string help,
                            Need need) {
  return add({.names = std::move(name),
              .value = {},
              .help = std::move(help),
              .initial = {},
              .words = {},
              .positional = true,
              .repeated = true,
              .required = need == Need::kRequired,
              .set = [&target](const std::string& text) { target.push_back(text); }});
}

Command& Command::option(std::string names, std::string value, std::string& target,
                         std::string help, Need need) {
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = target,
              .words = {},
              .required = need == Need::kRequired,
              .set = [&target](const std::string& text) { target = text; }});
}

Command& Command::option(std::string names, std::string value, std::optional<std::string>& target,
                         std::string help) {
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = {},
              .words = {},
              .set = [&target](const std::string& text) { target = text; }});
}

Command& Command::number(std::string names, std::string value, std::string help,
                         std::string initial, std::function<void(const std::string&)> set) {
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = std::move(initial),
              .words = {},
              .set = std::move(set)});
}

Command& Command::option(std::string names, std::string value, double& target, AllowedRange range,
                         std::string help) {
  auto set = setter<double>(names, target, range);
  return number(std::move(names), std::move(value), std::move(help), fmt::format("{}", target),
                std::move(set));
}

Command& Command::option(std::string names, std::string value, std::optional<double>& target,
                         AllowedRange range, std::string help) {
  auto set = setter<double>(names, target, range);
  return number(std::move(names), std::move(value), std::move(help), {}, std::move(set));
}

Command& Command::option(std::string names, std::string value, int& target, AllowedRange range,
                         std::string help) {
  auto set = setter<int>(names, target, range);
  return number(std::move(names), std::move(value), std::move(help), unless_zero(target),
                std::move(set));
}

Command& Command::option(std::string names, std::string value, std::int64_t& target,
                         AllowedRange range, std::string help) {
  auto set = setter<std::int64_t>(names, target, range);
  return number(std::move(names), std::move(value), std::move(help), unless_zero(target),
                std::move(set));
}

Command& Command::option(std::string names, std::string value, std::optional<std::int64_t>& target,
                         AllowedRange range, std::string help) {
  auto set = setter<std::int64_t>(names, target, range);
  return number(std::move(names), std::move(value), std::move(help), {}, std::move(set));
}

Command& Command::option(std::string names, std::string value, std::uint64_t& target,
                         std::string help) {
  const std::string name = field_of(names);
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = fmt::format("{}", target),
              .words = {},
              .set = [&target, name](const std::string& text) {
                target = number_or_throw<std::uint64_t>(name, text, "a whole number from 0");
              }});
}

Command& Command::option(std::string names, std::string value, std::optional<std::uint64_t>& target,
                         std::string help) {
  const std::string name = field_of(names);
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = {},
              .words = {},
              .set = [&target, name](const std::string& text) {
                target = number_or_throw<std::uint64_t>(name, text, "a whole number from 0");
              }});
}

Command& Command::option(std::string names, std::string value, std::vector<std::string>& target,
                         std::string help) {
  return option(
      std::move(names), std::move(value),
      [&target](const std::string& text) { target.push_back(text); }, std::move(help));
}

Command& Command::option(std::string names, std::string value,
                         std::function<void(const std::string&)> take, std::string help) {
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = {},
              .words = {},
              .repeated = true,
              .set = std::move(take)});
}

Command& Command::choose(const std::string& names, std::vector<std::string> words,
                         std::string initial, std::function<void(std::size_t)> set,
                         const std::string& help) {
  const std::string name = field_of(names);
  return add({.names = names,
              .value = fmt::format("{}", fmt::join(words, "|")),
              .help = help,
              .initial = std::move(initial),
              .words = words,
              .set = [words, set = std::move(set), name](const std::string& text) {
                set(find_word(name, words, text));
              }});
}

Command& Command::flag(std::string names, bool& target, std::string help, bool value) {
  return add({.names = std::move(names),
              .value = {},
              .help = std::move(help),
              .initial = {},
              .words = {},
              .set = [&target, value](const std::string&) { target = value; }});
}

// Outputs that would replace what the same command reads or writes.

namespace {

/// Whether both are one file that is there.
bool is_same(const std::string& a, const std::string& b) {
  std::error_code ignored;  // of what is not there: not the same
  return std::filesystem::equivalent(a, b, ignored);
}

/// Whether both will be one file, by their names.
bool will_be_same(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(a, ignored) ==
         std::filesystem::weakly_canonical(b, ignored);
}

/// Whether a model's or a tokenizer's folder has files of such names.
bool is_model_file(const std::string& path) {
  constexpr std::array<std::string_view, 16> kBeginnings{
      "config",        "tokenizer",      "vocab",        "merges",
      "model",         "pytorch_model",  "tf_model",     "flax_model",
      "spiece",        "special_tokens", "added_tokens", "generation_config",
      "sentencepiece", "training.",      "bert_",        "generator"};
  const std::string name = base_name(path);
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Whether the value may name a file: not that of "--seed N".
bool may_be_path(const Entry& entry, const std::string& value) {
  return !value.empty() && value != "-" && (entry.positional || entry.value.size() > 2);
}

/// The files that a value may name: itself, and what follows a colon or is in parentheses, as in
/// join:FILE and explicit(FILE).
std::vector<std::string> paths_in(const std::string& value) {
  std::vector<std::string> paths{value};
  if (const auto colon = value.find(':'); colon != std::string::npos)
    paths.push_back(value.substr(colon + 1));
  for (std::size_t open = value.find('('); open != std::string::npos;
       open = value.find('(', open + 1)) {
    const std::size_t end = value.find_first_of(",)", open);
    if (end != std::string::npos) paths.push_back(value.substr(open + 1, end - open - 1));
  }
  return paths;
}

/// Whether the value may name a model or a tokenizer, by the name of the value.
bool may_be_model(const Entry& entry) {
  if (entry.is_flag() || !entry.words.empty()) return false;
  const std::string& name = entry.positional ? entry.names : entry.value;
  constexpr std::array<std::string_view, 6> kWhole{"A", "B", "BASE", "ADAPTER", "SECOND", "NEW"};
  constexpr std::array<std::string_view, 8> kPart{"MODEL", "CHECKPOINT", "TOKENIZER", "CONFIG",
                                                  "PATH",  "DIR",        "FOLDER",    "FILE"};
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  return std::ranges::find(kWhole, name) != kWhole.end() || std::ranges::any_of(kPart, has);
}

}  // namespace

bool Command::is_output(const Entry& entry) const {
  const std::string key = key_of(entry);
  return key == "output" || std::ranges::find(writes_, key, &Written::option) != writes_.end();
}

std::string Command::as_read(const Entry& entry, const std::string& value) const {
  if (!is_hub_name(value)) return value;
  if (is_output(entry)) {
    throw UsageError(
        fmt::format("{}: found '{}', expected another output: the Hugging Face cache "
                    "is only read",
                    entry.spellings().front(), escape(value)));
  }
  return may_be_model(entry) ? hub_snapshot(value, hub_cache_folder()) : value;
}

Command& Command::writes(std::vector<std::string> options, std::vector<std::string> suffixes) {
  suffixes.emplace_back();  // the file itself
  for (std::string& option : options) writes_.push_back({std::move(option), suffixes});
  return *this;
}

Command& Command::changes(std::string name, std::string flag) {
  changes_.push_back({std::move(name), std::move(flag)});
  return *this;
}

void Command::refuse_overwriting(const Typed& typed, const std::vector<std::string>& more) const {
  if (writes_.empty()) return;
  std::vector<GivenValue> given;
  for (const Entry& entry : entries_) {
    if (entry.is_flag()) continue;
    for (const std::string& value : given_values(entry, typed))
      given.emplace_back(&entry, as_read(entry, value));
    if (!entry.positional || !entry.repeated) continue;
    for (const std::string& value : more) given.emplace_back(&entry, as_read(entry, value));
  }
  for (const auto& [entry, value] : given) {
    const auto output = std::ranges::find(writes_, key_of(*entry), &Written::option);
    if (output == writes_.end()) continue;
    for (const std::string& suffix : output->suffixes)
      refuse_overwriting(*entry, value + suffix, given);
  }
}

void Command::refuse_overwriting(const Entry& entry, const std::string& path,
                                 const std::vector<GivenValue>& given) const {
  std::error_code ignored;
  const bool is_there = std::filesystem::is_regular_file(path, ignored);
  const std::string name = entry.spellings().front();
  if (is_there && is_same(path, "/dev/stdin"))
    throw UsageError(
        fmt::format("{} names the file that standard input reads, expected another one", name));
  for (const auto& [other, value] : given) {
    if (other == &entry || !may_be_path(*other, value)) continue;
    const std::string read = other->spellings().front();
    const auto refuse_same = [&] {
      throw UsageError(fmt::format("{} and {} name the same file, expected two", name, read));
    };
    const bool writes_too =
        std::ranges::find(writes_, key_of(*other), &Written::option) != writes_.end();
    if (writes_too && will_be_same(path, value)) refuse_same();
    if (!is_there) continue;
    for (const std::string& one : paths_in(value)) {
      if (is_same(path, one)) refuse_same();
    }
    if (is_model_file(path) && is_same(path, join(value, base_name(path))))
      throw UsageError(fmt::format("{} names a file of {}, expected another one", name, read));
  }
}

}  // namespace masque::cli
