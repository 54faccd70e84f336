// What scripts/unicode_tables.py wrote; used by unicode.hpp and unicode.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace masque::text {

struct CharProperties;

namespace tables {

/// Number of code points in a block of the second stages.
inline constexpr std::uint32_t kBlockSize = 128;

/// Block of the second stage, by code point / kBlockSize.
extern const std::uint16_t kPropertyBlock[];
/// Row of kProperties, by block · kBlockSize + code point % kBlockSize.
extern const std::uint8_t kPropertyIndex[];
/// The combinations of properties that occur.
extern const CharProperties kProperties[];

// Offsets into kPool, where a length stands before the characters; 0 is no mapping.
/// Lower case: block of the second stage, by code point / kBlockSize.
extern const std::uint8_t kLowerBlock[];
/// Lower case: place in kPool.
extern const std::uint16_t kLowerOffset[];
/// Canonical decompositions: block of the second stage.
extern const std::uint8_t kCanonicalBlock[];
/// Canonical decompositions: place in kPool.
extern const std::uint16_t kCanonicalOffset[];
/// Compatible decompositions: block of the second stage.
extern const std::uint8_t kCompatibleBlock[];
/// Compatible decompositions: place in kPool.
extern const std::uint16_t kCompatibleOffset[];
/// Lengths, each followed by so many characters.
extern const char32_t kPool[];

/// Number of pairs that compose.
extern const std::size_t kPairCount;
/// The pairs in rising order: first · 2^32 + second.
extern const std::uint64_t kPair[];
/// What each pair composes to.
extern const char32_t kComposed[];

// Ranges: first, last, first, last, …
/// Number of ranges in kCased.
extern const std::size_t kCasedCount;
/// Characters with case.
extern const char32_t kCased[];
/// Number of ranges in kCaseIgnorable.
extern const std::size_t kCaseIgnorableCount;
/// Characters that are ignored where case depends on its surroundings (final sigma).
extern const char32_t kCaseIgnorable[];
/// Number of ranges in kScriptRange.
extern const std::size_t kScriptCount;
/// Characters of one script.
extern const char32_t kScriptRange[];
/// The number of the script of each range, from 1.
extern const std::uint8_t kScript[];

}  // namespace tables
}  // namespace masque::text
