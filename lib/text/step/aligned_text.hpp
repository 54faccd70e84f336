// Text on its way through a tokenizer, which knows for each of its bytes what it stands for in the
// text that the user gave.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace masque::text {

/// Bytes [begin, end) of the original.
struct Span {
  std::uint32_t begin = 0;  ///< first byte
  std::uint32_t end = 0;    ///< one past the last byte
  bool operator==(const Span&) const = default;
};

/// A stretch of text after some normalisation. `origin[i]` is the character of the original that
/// byte i comes from: all bytes of one normalised character share it; a character that was inserted
/// has an empty span at its place, as in Hugging Face's tokenizers. Originals are at most 4 GiB.
struct AlignedText {
  std::string text;          ///< valid UTF-8
  std::vector<Span> origin;  ///< one for each byte of `text`

  /// The whole of `text`, as it is: valid UTF-8, which begins at byte `offset` of the original.
  static AlignedText from(std::string_view text, std::uint32_t offset = 0);
  /// The part [begin, end) of `text`, on character boundaries.
  AlignedText part(std::size_t begin, std::size_t end) const;
  /// Span of the original that bytes [begin, end) come from, begin < end: from the first begin to
  /// the last end of those that are not inserted; if all are, the empty span of the first.
  Span span(std::size_t begin, std::size_t end) const;
};

}  // namespace masque::text
