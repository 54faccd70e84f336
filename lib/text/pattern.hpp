// What the `pattern` of a Replace or Split finds: a text, or one of the regular expressions in use.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace masque::text {

class PartFields;

/// Bytes [begin, end) of a text.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const Stretch&) const = default;
};

class Pattern {
 public:
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  /// Appends the matches, from left to right; none is empty. Time O(length).
  virtual void find(std::string_view text, std::vector<Stretch>& out) const = 0;
};

/// The pattern of a part: {"String": …}, or {"Regex": …} where the expression is that of GPT-2,
/// Llama 3 or Qwen 2, or one character or class with `+`, `{n}`, `{n,}` or nothing behind it.
/// Throws InputError that quotes any other expression.
std::shared_ptr<const Pattern> make_pattern(const PartFields& fields);

/// Appends the matches of GPT-2's expression, which cover the whole text:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
void find_gpt2_words(std::string_view text, std::vector<Stretch>& out);

/// The same for the expression of Llama 3 (numbers of at most 3 digits) and Qwen 2 (of 1 digit):
/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
/// \s*[\r\n]+|\s+(?!\S)|\s+
void find_llama_words(std::string_view text, int digits, std::vector<Stretch>& out);

}  // namespace masque::text
