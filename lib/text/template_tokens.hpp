// What a tokenizer's template puts around texts.
#pragma once

#include <vector>

#include "text/tokenizer.hpp"

namespace masque::text {

/// Tokens around one text, or around and between two.
struct TemplateTokens {
  std::vector<TokenId> before,  ///< before the first text
      between,                  ///< between two texts; empty for one
      after;                    ///< after the last text

  /// How many there are.
  Index size() const { return std::ssize(before) + std::ssize(between) + std::ssize(after); }
};

/// The tokens that `tokenizer` puts around one text or two (`texts`); none where it has no
/// template. Throws InputError for a template that repeats texts or reverses their order.
TemplateTokens template_tokens(const Tokenizer& tokenizer, std::size_t texts);

/// The tokens that `tokenizer` puts around a source and its target: where the template has nothing
/// between them, the sep token, else the eos token, and the same one after the target if there is
/// nothing either. Throws UsageError for a tokenizer without any of these.
TemplateTokens pair_tokens(const Tokenizer& tokenizer);

}  // namespace masque::text
