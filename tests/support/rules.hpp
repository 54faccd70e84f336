// The rules that a source can name, so that a test can ask for a bad file of each.
#pragma once

#include <set>
#include <string>

namespace masque::test {

/// The names that stand in a source where a rule stands: after "Violation{" or "fail(", or as a
/// branch of a choice.
inline std::set<std::string> rules_in(std::string text) {
  // A quote as a character begins no string.
  for (std::size_t at = 0; (at = text.find("'\"'")) != std::string::npos;) text.erase(at, 3);
  std::set<std::string> rules;
  for (std::size_t open = text.find('"'); open != std::string::npos;) {
    const std::size_t close = text.find('"', open + 1);
    const std::string name = text.substr(open + 1, close - open - 1);
    const std::string before = text.substr(0, text.find_last_not_of(" \n", open - 1) + 1);
    const bool place = before.ends_with("Violation{") || before.ends_with("fail(") ||
                       before.ends_with("?") || before.ends_with(":");
    const bool word =
        !name.empty() &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
    if (place && word) rules.insert(name);
    open = text.find('"', close + 1);
  }
  return rules;
}

}  // namespace masque::test
