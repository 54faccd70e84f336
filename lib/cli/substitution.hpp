// s/PATTERN/REPLACEMENT/ as an argument.
#pragma once

#include <optional>
#include <regex>
#include <string>

namespace masque::cli {

/// A regular expression (ECMAScript) and what replaces its matches ("$1": what its first group
/// found). Another character than the slash may part them: s|PATTERN|REPLACEMENT|.
class Substitution {
 public:
  /// Whether a word is meant to be one.
  static bool is_one(const std::string& word);

  /// Throws UsageError.
  explicit Substitution(const std::string& word);

  /// The text with every match replaced; nothing if there is none. Texts of more than 1024 bytes
  /// could need more stack than there is: UsageError.
  std::optional<std::string> apply(const std::string& text) const;

 private:
  std::string word_;
  std::regex pattern_;
  std::string replacement_;
};

}  // namespace masque::cli
