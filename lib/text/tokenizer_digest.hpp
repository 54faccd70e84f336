// Whether two tokenizers are the same.
#pragma once

#include <string>

#include "text/tokenizer.hpp"

namespace masque::text {

/// Returns the XXH3 hash of all tokens of `tokenizer` in the order of their ids, and of the ids
/// that it makes of a few lines in several scripts, in hexadecimal digits: tokenizers with
/// different digests are different. O(vocabulary).
std::string tokenizer_digest(const Tokenizer& tokenizer);

}  // namespace masque::text
