// Properties of code points, each exactly as Hugging Face's tokenizers (0.23) has it: the versions
// of Unicode differ from one property to the next, which is why no library will do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/unicode/tables.hpp"

namespace masque::text {

/// Flags of a code point, in the order of scripts/unicode_tables.py.
enum CharFlag : std::uint32_t {
  kWhiteSpace = 1u << 0,          ///< White_Space, `\s`: 25 code points
  kBertRemoved = 1u << 1,         ///< deleted by BertNormalizer's clean_text
  kBertSpace = 1u << 2,           ///< made U+0020 by it
  kChinese = 1u << 3,             ///< gets spaces on both sides from handle_chinese_chars
  kPunctuation = 1u << 4,         ///< of BertPreTokenizer and Punctuation
  kBertMark = 1u << 5,            ///< deleted by BertNormalizer's strip_accents, after NFD
  kMark = 1u << 6,                ///< deleted by StripAccents
  kLetter = 1u << 7,              ///< `\p{L}` of a regex (Oniguruma)
  kNumber = 1u << 8,              ///< `\p{N}` of a regex
  kNumeric = 1u << 9,             ///< of Digits
  kWord = 1u << 10,               ///< `\w` of Whitespace and of an added token's single_word
  kPictographic = 1u << 11,       ///< Extended_Pictographic
  kConjunctConsonant = 1u << 12,  ///< Indic_Conjunct_Break
  kConjunctLinker = 1u << 13,
  kConjunctExtend = 1u << 14,
  kComposesFirst = 1u << 15,   ///< is the first of some pair that composes (without Hangul)
  kComposesSecond = 1u << 16,  ///< is the second of one
  kBertPlain = 1u << 17,       ///< strip_accents and lowercase leave it, and no mark moves over it
  kNfcInert = 1u << 18,        ///< NFC leaves it alone, and it neither moves nor composes backwards
  kNfkcInert = 1u << 19,       ///< the same for NFKC
};

/// Grapheme_Cluster_Break.
enum class GraphemeClass : std::uint8_t {
  kOther,
  kCR,
  kLF,
  kControl,
  kExtend,
  kZwj,
  kRegionalIndicator,
  kPrepend,
  kSpacingMark,
  kL,
  kV,
  kT,
  kLV,
  kLVT
};

/// The properties of a code point.
struct CharProperties {
  std::uint32_t flags;           ///< of CharFlag
  std::uint8_t combining_class;  ///< canonical combining class
  GraphemeClass grapheme;        ///< Grapheme_Cluster_Break
  /// Whether it has any of the flags `any`.
  bool has(std::uint32_t any) const { return (flags & any) != 0; }
};

/// Properties of `c`, a code point below 0x110000.
inline const CharProperties& properties(char32_t c) {
  const std::size_t block = tables::kPropertyBlock[c / tables::kBlockSize];
  return tables::kProperties[tables::kPropertyIndex[block * tables::kBlockSize +
                                                    c % tables::kBlockSize]];
}

/// Whether `c` has any of the flags `any`.
inline bool is(char32_t c, std::uint32_t any) { return properties(c).has(any); }

/// The number of the script of `c`, from 1, as the pre-tokenizer UnicodeScripts of tokenizers has
/// it (Han, Hiragana and Katakana are one); 0 for a space and what goes with any script.
unsigned script_of(char32_t c);
/// Whether `c` is of upper, lower or title case, and none of the next; as Python 3.11's str.lower
/// has it.
bool is_cased(char32_t c);
/// Whether str.lower looks through `c` for the rule of the final sigma: marks, apostrophes, full
/// stops …
bool is_case_ignorable(char32_t c);

/// The lower case of `c`; empty if it stays.
std::u32string_view lower_case(char32_t c);
/// The whole canonical decomposition of `c`, in which nothing decomposes; empty if it stays, and
/// for Hangul syllables.
std::u32string_view canonical_decomposition(char32_t c);
/// The whole compatible decomposition of `c`, the canonical ones included; empty if it stays, and
/// for Hangul syllables.
std::u32string_view compatible_decomposition(char32_t c);

/// The character that NFC makes of `first` and `second`, Hangul included; 0 if they do not compose.
char32_t compose(char32_t first, char32_t second);

inline constexpr char32_t kHangulBase = 0xAC00;  ///< the first syllable
inline constexpr char32_t kHangulL = 0x1100;     ///< the first leading consonant
inline constexpr char32_t kHangulV = 0x1161;     ///< the first vowel
inline constexpr char32_t kHangulT = 0x11A7;     ///< one before the first trailing consonant
inline constexpr char32_t kHangulLCount = 19;    ///< leading consonants
inline constexpr char32_t kHangulVCount = 21;    ///< vowels
inline constexpr char32_t kHangulTCount = 28;    ///< trailing consonants, with that of none

/// Whether `c` is a Hangul syllable, which decomposes by computation.
inline bool is_hangul_syllable(char32_t c) {
  return c - kHangulBase < kHangulLCount * kHangulVCount * kHangulTCount;
}

// Code points of valid UTF-8 and two of their classes, by these properties.

/// The byte at which the last character of `text` begins; 0 for an empty one.
std::size_t last_begin(std::string_view text);
/// The last character of `text`, which is not empty.
char32_t last_code_point(std::string_view text);

/// Whether `code_point` is White_Space: one of the 25 code points of Rust's `char::is_whitespace`
/// and of `\s`.
bool is_white_space(char32_t code_point);
/// Whether `code_point` is `\w` of Rust's regex: letters, marks, decimal digits, connectors, join
/// controls.
bool is_word(char32_t code_point);

}  // namespace masque::text
