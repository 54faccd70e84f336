// Characters that stand for a space in the tokens of vocabularies.
#pragma once

#include <string_view>

namespace masque::text {

/// ▁, U+2581: in vocabularies of SentencePiece and of the step Metaspace.
inline constexpr std::string_view kSpaceMark = "\u2581";
/// Ġ, U+0120: in byte-level vocabularies, whose characters stand for bytes.
inline constexpr std::string_view kByteSpaceMark = "\u0120";

}  // namespace masque::text
