// What scripts/unicode_tables.py wrote; used by unicode.hpp and unicode.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace masque::text {

struct CharProperties;

namespace tables {

/// Number of code points in a block of the second stages.
inline constexpr std::uint32_t kBlockSize = 128;

extern const std::uint16_t kPropertyBlock[];
extern const std::uint8_t kPropertyIndex[];
extern const CharProperties kProperties[];

// Offsets into kPool, where a length stands before the characters; 0 is no mapping.
extern const std::uint8_t kLowerBlock[];
extern const std::uint16_t kLowerOffset[];
extern const std::uint8_t kCanonicalBlock[];
extern const std::uint16_t kCanonicalOffset[];
extern const std::uint8_t kCompatibleBlock[];
extern const std::uint16_t kCompatibleOffset[];
extern const char32_t kPool[];

extern const std::size_t kPairCount;
extern const std::uint64_t kPair[];
extern const char32_t kComposed[];

// Ranges: first, last, first, last, … The counts are of ranges.
extern const std::size_t kCasedCount;
extern const char32_t kCased[];
extern const std::size_t kCaseIgnorableCount;
extern const char32_t kCaseIgnorable[];

}  // namespace tables
}  // namespace masque::text
