// What a tokenizer's template puts around texts.
#pragma once

#include <vector>

#include "text/tokenizer.hpp"

namespace masque::text {

/// Tokens around one text, or around and between two.
struct TemplateTokens {
  std::vector<TokenId> before, between, after;

  Index size() const { return std::ssize(before) + std::ssize(between) + std::ssize(after); }
};

/// Of one text or two; nothing where the tokenizer has no template. Throws InputError for a
/// template that repeats texts or reverses their order.
TemplateTokens template_tokens(const Tokenizer& tokenizer, std::size_t texts);

/// Of a source and its target: where the template has nothing between them, the sep token, else the
/// eos token, and the same one after the target if there is nothing either. Throws UsageError for
/// a tokenizer without any of these.
TemplateTokens pair_tokens(const Tokenizer& tokenizer);

}  // namespace masque::text
