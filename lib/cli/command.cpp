// CLI11 splits the command line; what it finds is set, checked and reported here, so that every
// message and every help text reads the same.
#include "cli/command.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/version.hpp"

namespace masque::cli {

namespace {

template <class T>
T parse_number(const std::string& name, const std::string& text, const char* expected) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    throw UsageError(fmt::format("{}: found '{}', expected {}", name, escape(text), expected));
  }
  return value;
}

template <class T>
T parse_in(const std::string& name, const std::string& text, Range range, const char* expected) {
  const T value = parse_number<T>(name, text, expected);
  const auto as_double = static_cast<double>(value);
  if (!(as_double >= range.low && as_double <= range.high)) {
    const std::string limits = std::isinf(range.high)
                                   ? fmt::format("at least {}", range.low)
                                   : fmt::format("{} to {}", range.low, range.high);
    throw UsageError(fmt::format("{}: found {}, expected {}", name, text, limits));
  }
  return value;
}

/// "-o,--output" → "--output".
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

constexpr char kPositionalMark = '\x01';

std::string unmarked(const std::string& text) {
  return text.starts_with(kPositionalMark) ? text.substr(1) : text;
}

/// Behind "--" nothing is an option: a mark that no user types keeps CLI11 from looking.
std::vector<std::string> mark_positionals(std::vector<std::string> arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) return arguments;
  for (auto at = arguments.erase(dashes); at != arguments.end(); ++at)
    at->insert(0, 1, kPositionalMark);
  return arguments;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const auto near = nearest(word, candidates);
  return near ? fmt::format("; did you mean '{}'?", *near) : std::string();
}

}  // namespace

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

Command& Command::argument(std::string name, std::string& target, std::string help) {
  return add({.names = std::move(name),
              .value = {},
              .help = std::move(help),
              .initial = {},
              .words = {},
              .positional = true,
              .required = true,
              .set = [&target](const std::string& text) { target = text; }});
}

Command& Command::arguments(std::string name, std::vector<std::string>& target, std::string help) {
  return add({.names = std::move(name),
              .value = {},
              .help = std::move(help),
              .initial = {},
              .words = {},
              .positional = true,
              .repeated = true,
              .required = true,
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

Command& Command::option(std::string names, std::string value, double& target, Range range,
                         std::string help) {
  const std::string name = long_name(names);
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = fmt::format("{}", target),
              .words = {},
              .set = [&target, range, name](const std::string& text) {
                target = parse_in<double>(name, text, range, "a number");
              }});
}

Command& Command::option(std::string names, std::string value, std::optional<double>& target,
                         Range range, std::string help) {
  const std::string name = long_name(names);
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = {},
              .words = {},
              .set = [&target, range, name](const std::string& text) {
                target = parse_in<double>(name, text, range, "a number");
              }});
}

Command& Command::option(std::string names, std::string value, int& target, Range range,
                         std::string help) {
  const std::string name = long_name(names);
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = target == 0 ? std::string() : fmt::format("{}", target),
              .words = {},
              .set = [&target, range, name](const std::string& text) {
                target = parse_in<int>(name, text, range, "a whole number");
              }});
}

Command& Command::option(std::string names, std::string value, std::uint64_t& target,
                         std::string help) {
  const std::string name = long_name(names);
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = fmt::format("{}", target),
              .words = {},
              .set = [&target, name](const std::string& text) {
                target = parse_number<std::uint64_t>(name, text, "a whole number from 0");
              }});
}

Command& Command::option(std::string names, std::string value, std::vector<std::string>& target,
                         std::string help) {
  return add({.names = std::move(names),
              .value = std::move(value),
              .help = std::move(help),
              .initial = {},
              .words = {},
              .repeated = true,
              .set = [&target](const std::string& text) { target.push_back(text); }});
}

Command& Command::choose(const std::string& names, std::vector<std::string> words,
                         std::string initial, std::function<void(std::size_t)> set,
                         const std::string& help) {
  const std::string name = long_name(names);
  return add(
      {.names = names,
       .value = fmt::format("{}", fmt::join(words, "|")),
       .help = help,
       .initial = std::move(initial),
       .words = words,
       .set = [words, set = std::move(set), name](const std::string& text) {
         const auto found = std::find(words.begin(), words.end(), text);
         if (found == words.end()) {
           throw UsageError(fmt::format(
               "{}: found '{}', expected one of {}{}", name, escape(text), fmt::join(words, ", "),
               did_you_mean(text, std::vector<std::string_view>(words.begin(), words.end()))));
         }
         set(static_cast<std::size_t>(found - words.begin()));
       }});
}

Command& Command::flag(std::string names, bool& target, std::string help) {
  return add({.names = std::move(names),
              .value = {},
              .help = std::move(help),
              .initial = {},
              .words = {},
              .set = [&target](const std::string&) { target = true; }});
}

Command& Command::action(std::function<ExitCode(Session&)> run) {
  action_ = std::move(run);
  return *this;
}

std::string Command::full_name() const {
  return parent_ == nullptr ? name_ : fmt::format("{} {}", parent_->full_name(), name_);
}

std::vector<std::string_view> Command::known_options() const {
  std::vector<std::string_view> names = {"--help"};
  if (parent_ == nullptr) names.emplace_back("--version");
  for (const Entry& entry : entries_) {
    if (entry.positional) continue;
    const std::string_view all = entry.names;
    names.push_back(all.substr(all.rfind(',') + 1));
  }
  return names;
}

Command* Command::find_subcommand(const std::string& word) const {
  std::vector<std::string_view> names;
  for (const auto& child : subcommands_) {
    if (child->name_ == word) return child.get();
    names.emplace_back(child->name_);
  }
  if (word.starts_with('-')) return nullptr;
  throw UsageError(fmt::format("no command '{}'{}", escape(word), did_you_mean(word, names)));
}

const Command* Command::parse(const std::vector<std::string>& arguments, std::string& text) {
  if (!subcommands_.empty()) {
    if (arguments.empty()) {
      text = help();
      throw UsageError(fmt::format("no command, expected one of those in '{} --help'", name_));
    }
    if (Command* child = find_subcommand(arguments[0])) {
      return child->parse({arguments.begin() + 1, arguments.end()}, text);
    }
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  bool wants_help = false;
  bool wants_version = false;
  app.add_flag("-h,--help", wants_help);
  if (parent_ == nullptr) app.add_flag("--version", wants_version);
  std::vector<std::pair<const Entry*, CLI::Option*>> options;
  for (const Entry& entry : entries_) {
    CLI::Option* option = nullptr;
    if (entry.value.empty() && !entry.positional) {
      option = app.add_flag(entry.names);
    } else {
      // Results are read below, in order of declaration, after help had its turn.
      option = app.add_option(entry.names, [](const CLI::results_t&) { return true; });
      option->expected(1);
      if (entry.repeated) {
        option->take_all();  // further positional values arrive as extras
      } else {
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      }
    }
    options.emplace_back(&entry, option);
  }
  const std::vector<std::string> marked = mark_positionals(arguments);
  std::vector<std::string> reversed(marked.rbegin(), marked.rend());
  app.parse(reversed);  // throws CLI::ParseError for an option without its value
  if (wants_help) {
    text = help();
    return nullptr;
  }
  if (wants_version) {
    text = fmt::format("{} (masque) {}\n", name_, kVersion);
    return nullptr;
  }
  const bool last_is_repeated =
      std::any_of(entries_.begin(), entries_.end(),
                  [](const Entry& entry) { return entry.positional && entry.repeated; });
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra.starts_with('-')) {
      const std::string word = extra.substr(0, extra.find('='));
      throw UsageError(
          fmt::format("no option '{}'{}", escape(word), did_you_mean(word, known_options())));
    }
    if (!last_is_repeated) {
      throw UsageError(fmt::format("unexpected argument '{}'", escape(extra)));
    }
  }
  for (const auto& [entry, option] : options) {
    if (entry->required && option->count() == 0) {
      const std::string first = entry->names.substr(0, entry->names.find(','));
      throw UsageError(fmt::format("no {}{}, expected one (see '{} --help')", first,
                                   entry->positional ? "" : " " + entry->value, full_name()));
    }
    for (const std::string& value : option->results()) entry->set(unmarked(value));
    if (!entry->positional || !entry->repeated) continue;
    for (const std::string& value : app.remaining()) entry->set(unmarked(value));
  }
  if (!action_) throw UsageError(fmt::format("no command (see '{} --help')", full_name()));
  return this;
}

}  // namespace masque::cli
