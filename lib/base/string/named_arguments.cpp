#include "base/string/named_arguments.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"

namespace masque {

namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// Whether each parenthesis has its other one.
bool parentheses_fit(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')' && --depth < 0) return false;
  }
  return depth == 0;
}

}  // namespace

NamedArguments::NamedArguments(std::string_view text) {
  const auto fail = [text](std::string_view message) {
    throw UsageError(fmt::format("'{}': {}", escape(text), message));
  };
  const std::string_view all = trim(text);
  const std::size_t open = std::min(all.find('('), all.size());
  const std::string_view name = trim(all.substr(0, open));
  if (!is_word(name)) fail("a name was expected, with or without (key=value, …)");
  name_ = name;
  if (open == all.size()) return;
  if (all.back() != ')') fail("a closing parenthesis was expected at the end");
  const std::string_view inside = trim(all.substr(open + 1, all.size() - open - 2));
  if (inside.empty()) return;
  const auto parts = split_outside_parentheses(inside, ',');
  for (const std::string_view& argument : parts) {
    if (!parentheses_fit(argument)) fail("the parentheses are not balanced");
    if (argument.empty() && &argument != &parts.front() && &argument == &parts.back())
      fail("key=value was expected after the last comma");
    const auto [before, value] = split_at_first(argument, '=');
    const std::string_view key = trim(before);
    if (!is_word(key) || !value) fail("key=value was expected between commas");
    if (!values_.emplace(key, trim(*value)).second) {
      fail(fmt::format("{} is given twice", key));
    }
  }
}

void NamedArguments::refuse(std::string_view key, std::string_view value,
                            std::string_view expected) const {
  throw UsageError(fmt::format("{}: {} is '{}', expected {}", name_, key, escape(value), expected));
}

const std::string* NamedArguments::find(std::string_view key, const std::string& standard) {
  known_.emplace_back(key);
  standards_.push_back(fmt::format("{}={}", key, standard));
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

Index NamedArguments::count(std::string_view key, Index standard, Index least, Index most) {
  const std::string* text = find(key, fmt::to_string(standard));
  if (text == nullptr) return standard;
  const auto value = parse_number<Index>(*text);
  if (!value || *value < least || *value > most) {
    refuse(key, *text, fmt::format("a whole number from {} to {}", least, most));
  }
  return *value;
}

double NamedArguments::number(std::string_view key, double standard, double least, double most) {
  const std::string* text = find(key, fmt::format("{}", standard));
  if (text == nullptr) return standard;
  const auto value = parse_number<double>(*text);
  if (!value || !(*value >= least && *value <= most)) {
    refuse(key, *text, fmt::format("a number from {} to {}", least, most));
  }
  return *value;
}

bool NamedArguments::flag(std::string_view key, bool standard) {
  const std::string* text = find(key, standard ? "true" : "false");
  if (text == nullptr) return standard;
  if (*text != "true" && *text != "false") refuse(key, *text, "true or false");
  return *text == "true";
}

std::string NamedArguments::text(std::string_view key, std::string_view standard) {
  const std::string* text = find(key, std::string(standard));
  return text == nullptr ? std::string(standard) : *text;
}

std::string NamedArguments::choice(std::string_view key, std::string_view standard,
                                   std::span<const std::string_view> possible) {
  std::string value = text(key, standard);
  if (std::find(possible.begin(), possible.end(), value) == possible.end()) {
    refuse(key, value, fmt::format("one of {}", fmt::join(possible, ", ")));
  }
  return value;
}

void NamedArguments::check_all_known() const {
  for (const auto& [key, value] : values_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    throw UsageError(fmt::format(
        "{} has no parameter '{}', {}", name_, escape(key),
        known_.empty() ? "nor any other" : fmt::format("only {}", fmt::join(known_, ", "))));
  }
}

std::string NamedArguments::standards() const {
  return fmt::format("{}", fmt::join(standards_, ", "));
}

}  // namespace masque
