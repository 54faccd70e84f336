// s/PATTERN/REPLACEMENT/ as an argument.
#pragma once

#include <optional>
#include <string>

#include "base/string/regex.hpp"

namespace masque::cli {

/// A regular expression (Perl's) and what replaces its matches, in which `$1` is what its first
/// group found (two digits are one number), `$&` the match, "$`" and `$'` what lies between the
/// match before and this one, and after this one, `$$` a `$`. `|` may stand for the slash:
/// s|PATTERN|REPLACEMENT|.
class Substitution {
 public:
  /// Whether `word` is meant to be one: it begins with `s/` or `s|`.
  static bool is_one(const std::string& word);

  /// Reads `word`, for which is_one() is true. Throws UsageError for an empty pattern, one that is
  /// no regular expression, or a word without exactly three slashes, the third at its end.
  explicit Substitution(const std::string& word);

  /// `text` with every match replaced; nothing if there is none. Texts of more than 1024 bytes,
  /// results of more than 65536, and matches that cannot be found in bounded time: UsageError.
  std::optional<std::string> apply(const std::string& text) const;

 private:
  void append_replacement(const RegexSearch& found, std::size_t copied, const std::string& text,
                          std::string& out) const;

  std::string word_;
  std::string replacement_;
  std::optional<Regex> pattern_;
};

}  // namespace masque::cli
