// A tokenizer that reads text in lower case.
#pragma once

#include "text/tokenizer.hpp"

namespace masque::text {

/// `tokenizer` with a normalizer "Lowercase" of Hugging Face's tokenizers in front of its own: what
/// do_lower_case of a sentence-transformers folder means. Special tokens in the text are found
/// before it.
Tokenizer lowercased(const Tokenizer& tokenizer);

}  // namespace masque::text
