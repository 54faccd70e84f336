// Variants with parameters as they are spelled: "rope_yarn(factor=8, length=512)".
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque {

/// A name and its arguments. Whoever makes the variant asks for each argument that it knows; what
/// nobody requested is an error of `check_all_known`.
class NamedArguments {
 public:
  /// Parses `text`, which is NAME or NAME(key=value, …). A value may itself be spelled with
  /// parentheses. Throws UsageError "'TEXT': what was expected".
  explicit NamedArguments(std::string_view text);

  /// The NAME, letters, digits and underscores.
  const std::string& name() const { return name_; }

  /// Returns the whole number of the argument `key` or, if it was not given, `standard`. Throws
  /// UsageError for a value that is none, or not within [`least`, `most`].
  Index count(std::string_view key, Index standard, Index least, Index most);
  /// Returns the number of the argument `key` or, if it was not given, `standard`. Throws
  /// UsageError for a value that is none, or not within [`least`, `most`].
  double number(std::string_view key, double standard, double least, double most);
  /// Returns whether the argument `key` is "true" or, if it was not given, `standard`. Throws
  /// UsageError for a value that is neither "true" nor "false".
  bool flag(std::string_view key, bool standard);
  /// Returns the text of the argument `key` or, if it was not given, `standard`.
  std::string text(std::string_view key, std::string_view standard);
  /// Returns the text of the argument `key` or, if it was not given, `standard`. Throws UsageError
  /// for one that is not among the texts `possible`.
  std::string choice(std::string_view key, std::string_view standard,
                     std::span<const std::string_view> possible);

  /// Throws UsageError that names the arguments requested unless every one given is among them.
  void check_all_known() const;
  /// What was requested, with the values of each where it was not given: "base=10000, factor=8".
  std::string standards() const;

 private:
  [[noreturn]] void refuse(std::string_view key, std::string_view value,
                           std::string_view expected) const;
  /// The text of an argument or nullptr; notes that it is known.
  const std::string* find(std::string_view key, const std::string& standard);

  std::string name_;
  std::map<std::string, std::string, std::less<>> values_;
  std::vector<std::string> known_;
  std::vector<std::string> standards_;
};

}  // namespace masque
