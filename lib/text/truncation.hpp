// Cutting a text, or a pair of them, to a number of tokens.
#pragma once

#include "text/encoding.hpp"

namespace masque::text {

enum class TruncationStrategy { kLongestFirst, kOnlyFirst, kOnlySecond };

struct Truncation {
  std::size_t max_length = 0;  ///< tokens of the template included
  TruncationStrategy strategy = TruncationStrategy::kLongestFirst;
  bool from_left = false;  ///< which side is cut
};

/// Cuts as Hugging Face's tokenizers do; `max_length` no longer counts the template's tokens.
/// `second` may be nullptr. Throws InputError if the chosen text is too short to be cut so far, or
/// is not there.
void truncate(Encoding& first, Encoding* second, const Truncation& truncation);

}  // namespace masque::text
