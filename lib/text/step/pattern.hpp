// What the `pattern` of a Replace or Split finds: a text, or what a regular expression matches.
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
  std::size_t begin = 0;  ///< first byte
  std::size_t end = 0;    ///< one past the last byte
  bool operator==(const Stretch&) const = default;
};

/// Finds stretches of a text. Immutable and thread-safe.
class Pattern {
 public:
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  /// Appends the matches in `text` (valid UTF-8) to `out`, from left to right, as the reference
  /// finds them: some may be empty; an empty text has none. Time O(length) for texts and the
  /// expressions below; any other expression has limits, beyond which this throws InputError.
  virtual void find(std::string_view text, std::vector<Stretch>& out) const = 0;
};

/// The field "pattern" of `fields`: {"String": …} or {"Regex": …}, in Oniguruma's syntax. The
/// expressions of GPT-2, Llama 3 and Qwen 2, and a character or class that is repeated or not, are
/// done by hand, which is faster. Throws InputError that quotes an expression which is not valid;
/// so does a search that exceeds its limits.
std::shared_ptr<const Pattern> make_pattern(const PartFields& fields);

/// Appends the matches of GPT-2's expression, which cover the whole of `text`, to `out`:
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
void find_gpt2_words(std::string_view text, std::vector<Stretch>& out);

/// Appends the matches of the expression of Llama 3 (numbers of at most `digits` = 3 digits) or
/// Qwen 2 (of 1 digit), which cover the whole of `text`, to `out`:
/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|`
/// `\s*[\r\n]+|\s+(?!\S)|\s+`
void find_llama_words(std::string_view text, int digits, std::vector<Stretch>& out);

}  // namespace masque::text
