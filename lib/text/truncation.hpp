// Cutting a text, or a pair of them, to a number of tokens.
#pragma once

#include "text/encoding.hpp"

namespace masque::text {

/// Which text of a pair is cut, as Hugging Face names the ways.
enum class TruncationStrategy { kLongestFirst, kOnlyFirst, kOnlySecond };

/// How much is cut, and where.
struct Truncation {
  std::size_t max_length = 0;  ///< tokens of the template included
  TruncationStrategy strategy = TruncationStrategy::kLongestFirst;  ///< which text is cut
  bool from_left = false;  ///< cuts the begin of a text, not its end
};

/// Cuts `first` and `second`, which may be nullptr, to `truncation.max_length` tokens together as
/// Hugging Face's tokenizers do; here that does not count the template's tokens. Throws InputError
/// if the chosen text is too short to be cut so far, UsageError if it is not there.
void truncate(Encoding& first, Encoding* second, const Truncation& truncation);

}  // namespace masque::text
