// BertNormalizer and BertPreTokenizer in one, without alignment.
#pragma once

#include <string>
#include <string_view>

#include "text/fast_encoder.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

/// The words of a text, with buffers that it keeps. For one thread.
class BertWords {
 public:
  explicit BertWords(const BertFields& fields) : fields_(fields) {}

  /// Calls visit(word) for each word, normalised, in order.
  template <typename F>
  void each(std::string_view text, F visit) {
    normalize(text);
    word_.clear();
    for (const char32_t c : characters_) {
      const bool punctuation = is(c, kPunctuation);
      if ((punctuation || is(c, kWhiteSpace)) && !word_.empty()) {
        visit(std::string_view(word_));
        word_.clear();
      }
      if (is(c, kWhiteSpace)) continue;
      append_utf8(word_, c);
      if (!punctuation) continue;
      visit(std::string_view(word_));
      word_.clear();
    }
    if (!word_.empty()) visit(std::string_view(word_));
  }

 private:
  void normalize(std::string_view text);
  void decompose(char32_t c);
  void order_marks();

  BertFields fields_;
  std::u32string characters_;
  std::u32string lower_;
  std::string word_;
};

}  // namespace masque::text
