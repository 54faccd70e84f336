// Which tokens of a text are special, which are punctuation.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "text/tokenizer.hpp"

namespace masque::evaluate {

/// One a token, 1 or 0.
struct TokenMarks {
  std::vector<std::uint8_t> special;      ///< special tokens of the tokenizer
  std::vector<std::uint8_t> punctuation;  ///< whose part of the text is punctuation and spaces
};

/// Marks the tokens `ids`, whose byte offsets in `text` are `spans`, as `tokenizer` knows special
/// ones; a special token is no punctuation. Punctuation is that of BERT's pre-tokenizer: ASCII
/// symbols and Unicode's general category P.
TokenMarks mark_tokens(std::span<const TokenId> ids, std::span<const text::Span> spans,
                       std::string_view text, const text::Tokenizer& tokenizer);

}  // namespace masque::evaluate
