// The kinds of options and arguments that a command can declare.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/hidden_characters.hpp"
#include "base/parse_number.hpp"
#include "cli/command.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

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

namespace {

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

Command& Command::flag(std::string names, bool& target, std::string help) {
  return add({.names = std::move(names),
              .value = {},
              .help = std::move(help),
              .initial = {},
              .words = {},
              .set = [&target](const std::string&) { target = true; }});
}

}  // namespace masque::cli
