#include "text/original_bert.hpp"

#include "text/bert.hpp"
#include "text/rewriter.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

bool is_private(char32_t c) { return (c >= 0xE000 && c <= 0xF8FF) || c >= 0xF0000; }

bool is_chinese(char32_t c) { return is(c, kChinese) || (c >= 0x2B820 && c <= 0x2B91F); }

/// Finds the sigmas that are the last letter of a word that has others, as Python's str.lower does.
class FinalSigma {
 public:
  explicit FinalSigma(std::string_view text) : text_(text) {}

  /// Takes the next character, which ends at `end`; whether it is a final sigma.
  bool take(char32_t c, std::size_t end) {
    const bool final = c == kSigma && cased_before_ && !cased_after(end);
    if (!is_case_ignorable(c)) cased_before_ = is_cased(c);
    return final;
  }

 private:
  /// Each call looks at what is between one sigma and the next, which is cased: linear in all.
  bool cased_after(std::size_t i) const {
    while (i < text_.size()) {
      const char32_t c = next_char(text_, i);
      if (!is_case_ignorable(c)) return is_cased(c);
    }
    return false;
  }

  std::string_view text_;
  bool cased_before_ = false;
};

void final_sigmas(AlignedText& text) {
  if (text.text.find("\xCE\xA3") == std::string::npos) return;
  Rewriter rewriter(text);
  FinalSigma sigmas(text.text);
  for (std::size_t i = 0; i < text.text.size();) {
    const char32_t c = next_char(text.text, i);
    rewriter.put(sigmas.take(c, i) ? kFinalSigma : c, 0);
  }
  rewriter.finish();
}

void clean_and_space(AlignedText& text) {
  Rewriter rewriter(text);
  for (std::size_t i = 0; i < text.text.size();) {
    const char32_t c = next_char(text.text, i);
    if (is(c, kBertRemoved) && !is_private(c)) {
      rewriter.drop(1);
    } else if (is(c, kBertSpace)) {
      rewriter.put(U' ', 0);
    } else if (is_chinese(c)) {
      rewriter.put(U' ', 0);
      rewriter.put(c, 1);
      rewriter.put(U' ', 1);
    } else {
      rewriter.put(c, 0);
    }
  }
  rewriter.finish();
}

void lower_and_strip(AlignedText& text) {
  final_sigmas(text);
  lower(text);
  bert_normalize(text, {.clean_text = false,
                        .handle_chinese_chars = false,
                        .strip_accents = true,
                        .lowercase = false});
}

class OriginalBert final : public Normalizer {
 public:
  OriginalBert(bool lowercase, bool clean_first)
      : lowercase_(lowercase), clean_first_(clean_first) {}

  void apply(AlignedText& text) const override {
    if (clean_first_) clean_and_space(text);
    if (lowercase_) lower_and_strip(text);
    if (!clean_first_) clean_and_space(text);
  }

 private:
  bool lowercase_;
  bool clean_first_;
};

}  // namespace

std::shared_ptr<const Normalizer> make_google_bert(bool lowercase) {
  return std::make_shared<OriginalBert>(lowercase, true);
}

std::shared_ptr<const Normalizer> make_bert4keras(bool lowercase) {
  return std::make_shared<OriginalBert>(lowercase, false);
}

}  // namespace masque::text
