// SentencePiece's compiled table of replacements ("precompiled charsmap").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/step/aligned_text.hpp"

namespace masque::text {

/// Keys and what replaces them: a double-array trie and strings. Nothing in it is trusted: a walk
/// that leaves the trie, or a replacement that does not lie in the strings, is no match.
class Charsmap {
 public:
  /// A key at the begin of a text, and what replaces it.
  struct Match {
    std::size_t length;            ///< bytes of the key
    std::string_view replacement;  ///< valid UTF-8; lives as long as the Charsmap stays where it is
  };

  /// Reads the `bytes` of a table, of the file `path`; throws InputError "path: charsmap: …". Empty
  /// bytes replace nothing.
  Charsmap(std::string_view bytes, const std::string& path);

  /// The shortest key that `text` begins with; nothing if there is none.
  std::optional<Match> shortest(std::string_view text) const { return find(text, true); }
  /// The longest key that `text` begins with and that does not end inside a character of it:
  /// SentencePiece's table never means such a key.
  std::optional<Match> longest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Match> find(std::string_view text, bool first) const;

  std::vector<std::uint32_t> units_;
  std::string strings_;
};

/// Replaces in `text` by `charsmap` as the normalizer "Precompiled" of Hugging Face's tokenizers
/// does: grapheme by grapheme.
void replace_graphemes(AlignedText& text, const Charsmap& charsmap);

}  // namespace masque::text
