#include "evaluate/attention/token_marks.hpp"

#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::evaluate {

namespace {

bool is_punctuation(std::string_view part) {
  bool some = false;
  for (std::size_t i = 0; i < part.size();) {
    const char32_t c = text::next_char(part, i);
    if (text::is_white_space(c)) continue;
    if (!text::is(c, text::kPunctuation)) return false;
    some = true;
  }
  return some;
}

}  // namespace

TokenMarks mark_tokens(std::span<const TokenId> ids, std::span<const text::Span> spans,
                       std::string_view text, const text::Tokenizer& tokenizer) {
  TokenMarks marks;
  const std::size_t n = ids.size();
  marks.special.reserve(n);
  marks.punctuation.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool special = tokenizer.is_special(ids[i]);
    const auto [begin, end] = spans[i];
    marks.special.push_back(special ? 1 : 0);
    marks.punctuation.push_back(!special && is_punctuation(text.substr(begin, end - begin)) ? 1
                                                                                            : 0);
  }
  return marks;
}

}  // namespace masque::evaluate
