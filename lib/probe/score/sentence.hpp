// A line of text as a model reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace masque::probe {

/// Tokens of a text between those of a template: vectors of `size()` elements.
struct Sentence {
  std::vector<TokenId> ids;
  std::vector<std::string> pieces;
  std::vector<Index> segments;       ///< token types; empty: all 0
  std::vector<std::uint32_t> words;  ///< the same number for the pieces of a word
  std::vector<text::Span> spans;     ///< places in the text, in bytes; not needed to score
  std::uint64_t text_bytes = 0;      ///< of the whole text, also in a part of it
  Index prefix = 0;                  ///< tokens of the template in front of the text
  Index suffix = 0;                  ///< and after it

  Index size() const { return static_cast<Index>(ids.size()); }
  /// Tokens of the text.
  Index tokens() const { return size() - prefix - suffix; }
};

struct SentenceOptions {
  bool special = true;          ///< with the tokens of the template
  bool special_in_text = true;  ///< special tokens that stand in the text are found
  /// Put in front if the template puts nothing there: what a causal model reads before the first
  /// token.
  std::optional<TokenId> begin;
};

/// What a tokenizer's template does not put in front of a text, but a causal model needs there:
/// its bos token, else its eos token; nothing if it has neither.
std::optional<TokenId> begin_token(const text::Tokenizer& tokenizer);

/// Encodes a text, which is valid UTF-8. A word is a pre-token of the tokenizer, as transformers'
/// word_ids has it. Thread-safe.
Sentence encode_sentence(const text::Tokenizer& tokenizer, std::string_view text,
                         const SentenceOptions& options);

/// Tokens [begin, end) of the text, between the same tokens of the template.
Sentence part_of(const Sentence& sentence, Index begin, Index end);

}  // namespace masque::probe
