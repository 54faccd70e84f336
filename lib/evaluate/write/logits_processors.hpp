// What changes the logits of the next token before it is chosen: penalties of repeated tokens,
// tokens that may not follow, tokens that must.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::evaluate {

/// Changes of the logits; names, rules and order are those of transformers' generate (5.24), whose
/// input ids are the prompt and the new tokens. What is nothing changes nothing.
struct LogitsProcessors {
  /// Logits of tokens in the text are divided by it if they are positive, else multiplied; > 0.
  std::optional<double> repetition_penalty;
  /// No tokens of this number follow each other twice in a text; 0: they may.
  std::optional<std::int64_t> no_repeat_ngram_size;
  /// The last token of a word may not follow the others of it; words of one end token do not count.
  std::optional<std::vector<std::vector<TokenId>>> bad_words_ids;
  /// No end before the text has so many tokens, with the prompt; min_new_tokens replaces it.
  std::optional<std::int64_t> min_length;
  std::optional<std::int64_t> min_new_tokens;       ///< no end before so many new tokens
  std::optional<std::int64_t> forced_bos_token_id;  ///< the token after a prompt of one token
  /// Only these tokens may be the last one of a text of the greatest length.
  std::optional<std::vector<TokenId>> forced_eos_token_id;
  std::optional<std::vector<TokenId>> suppress_tokens;  ///< may not be written
  /// May not be the first new token, or the second one if forced_bos_token_id is the first.
  std::optional<std::vector<TokenId>> begin_suppress_tokens;
};

/// A text whose next token is to be chosen.
struct TextSoFar {
  std::span<const TokenId> ids;   ///< with the prompt
  Index prompt = 0;               ///< number of tokens of it
  bool last = false;              ///< whether the next token is the last that the text can have
  std::span<const TokenId> ends;  ///< tokens that end it
};

/// Throws InputError about a field of `processors` with an id outside a `vocabulary` of so many
/// tokens, where transformers' generate fails; in suppressed tokens such ids have no effect.
void check_logits_processors(const LogitsProcessors& processors, Index vocabulary);

/// Applies `processors` to the `scores` of the token after `text`: its logits, or in a beam search
/// its log-probabilities. Tokens that may not follow get −∞, which all of them may have.
void process_logits(const LogitsProcessors& processors, const TextSoFar& text,
                    std::span<double> scores);

}  // namespace masque::evaluate
