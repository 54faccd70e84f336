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

/// A character that has case or none but is part of a word, for the rule of the final sigma.
bool in_word(char32_t c) { return is(c, kLetter | kBertMark); }

/// Whether the sigma before byte `end` is the last letter of a word that has others.
bool is_final(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin == 0) return false;
  std::size_t before = begin;
  if (!in_word(previous_char(text, before))) return false;
  return end == text.size() || !in_word(next_char(text, end));
}

void final_sigmas(AlignedText& text) {
  if (text.text.find("\xCE\xA3") == std::string::npos) return;
  Rewriter rewriter(text);
  for (std::size_t i = 0; i < text.text.size();) {
    const std::size_t begin = i;
    const char32_t c = next_char(text.text, i);
    rewriter.put(c == kSigma && is_final(text.text, begin, i) ? kFinalSigma : c, 0);
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
