#include "text/template_tokens.hpp"

#include "base/error.hpp"
#include "text/post_processor.hpp"

namespace masque::text {

TemplateTokens template_tokens(const Tokenizer& tokenizer, std::size_t texts) {
  TemplateTokens out;
  const PostProcessor* processor = tokenizer.parts().post_processor.get();
  if (processor == nullptr) return out;
  // Stand-ins for the texts.
  std::vector<Encoding> parts(texts);
  for (std::size_t i = 0; i < texts; ++i) {
    parts[i].push_back(-1 - static_cast<TokenId>(i), "", {}, static_cast<std::uint32_t>(i), false);
  }
  processor->process(parts, true);
  std::size_t found = 0;
  for (const Encoding& part : parts) {
    for (const TokenId id : part.ids) {
      if (id >= 0) {
        (found == 0 ? out.before : found < texts ? out.between : out.after).push_back(id);
      } else if (++found > texts || id != -static_cast<TokenId>(found)) {
        throw InputError(
            tokenizer.parts().path,
            "a template that repeats texts or reverses their order, expected each once");
      }
    }
  }
  return out;
}

TemplateTokens pair_tokens(const Tokenizer& tokenizer) {
  TemplateTokens out = template_tokens(tokenizer, 2);
  if (!out.between.empty()) return out;
  const Roles& roles = tokenizer.roles();
  const std::optional<TokenId> separator = roles.sep ? roles.sep : roles.eos;
  if (!separator) {
    throw UsageError(
        "pairs: the tokenizer puts nothing between two texts, and has no sep or "
        "eos token");
  }
  out.between.push_back(*separator);
  if (out.after.empty()) out.after.push_back(*separator);
  return out;
}

}  // namespace masque::text
