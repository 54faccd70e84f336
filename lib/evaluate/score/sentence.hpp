// A line of text as tokens for a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "text/tokenizer.hpp"

namespace masque::evaluate {

/// Tokens of a text between those of a template: vectors of `size()` elements.
struct Sentence {
  std::vector<TokenId> ids;          ///< those of the template included
  std::vector<std::string> pieces;   ///< texts of the tokens in the vocabulary
  std::vector<Index> segments;       ///< token types; empty: all 0
  std::vector<std::uint32_t> words;  ///< word number of each token
  std::vector<text::Span> spans;     ///< byte offsets in the text; not needed to score
  std::vector<TokenId> source;       ///< what an encoder reads, of encoder–decoders; else empty
  std::vector<text::Span> source_spans;  ///< byte offsets of its tokens in the text of the source
  std::uint64_t text_bytes = 0;          ///< size of the whole text, also in a part of it
  Index prefix = 0;                      ///< tokens of the template in front of the text
  Index suffix = 0;                      ///< and after it

  /// Tokens, those of the template included.
  Index size() const { return static_cast<Index>(ids.size()); }
  /// Tokens of the text.
  Index tokens() const { return size() - prefix - suffix; }
};

/// How encode_sentence() makes tokens.
struct SentenceOptions {
  bool special = true;          ///< with the tokens of the template
  bool special_in_text = true;  ///< recognizes special tokens in the text
  /// The token that a causal model reads before the first one; added only if the template puts
  /// nothing there.
  std::optional<TokenId> begin;
};

/// The token to put before a text for a causal model: the bos token of `tokenizer`, else its eos
/// token; no value if it has neither.
std::optional<TokenId> begin_token(const text::Tokenizer& tokenizer);

/// Encodes `text`, which is valid UTF-8, as `options` say. A word is a pre-token of `tokenizer`, as
/// in transformers' word_ids. Thread-safe.
Sentence encode_sentence(const text::Tokenizer& tokenizer, std::string_view text,
                         const SentenceOptions& options);

/// Encodes `first` and `second` with the template of `tokenizer` for two texts, as `options` say;
/// the tokens between them are of the text. Spans count in each text; otherwise as
/// encode_sentence().
Sentence encode_pair_sentence(const text::Tokenizer& tokenizer, std::string_view first,
                              std::string_view second, const SentenceOptions& options);

/// Encodes `target` for a decoder of `design`, and `source` for its encoder, each with the template
/// of `tokenizer` for one text (of targets its own, where it has one), as `options` say, but
/// without SentenceOptions::begin. In front of the target stands the token that begins targets, as
/// the prefix; all others, those of the template too, are of the text. Throws InputError (message
/// only) if `design` does not state that token, and for a source or a target without tokens.
Sentence encode_target_sentence(const text::Tokenizer& tokenizer, std::string_view source,
                                std::string_view target, const SentenceOptions& options,
                                const model::SourceDesign& design);

/// Tokens [`begin`, `end`) of the text of `sentence`, which count from 0 without the template, with
/// the same template tokens around them.
Sentence part_of(const Sentence& sentence, Index begin, Index end);

}  // namespace masque::evaluate
