#include "text/fast/bert_words.hpp"

#include <algorithm>

namespace masque::text {

void BertWords::normalize(std::string_view text) {
  characters_.clear();
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = next_char(text, at);
    if (fields_.clean_text) {
      if (c == 0 || c == 0xFFFD || is(c, kBertRemoved)) continue;
      if (is(c, kBertSpace)) c = ' ';
    }
    const bool padded = fields_.handle_chinese_chars && is(c, kChinese);
    if (padded) characters_ += U' ';
    if (fields_.strip_accents) {
      decompose(c);
    } else {
      characters_ += c;
    }
    if (padded) characters_ += U' ';
  }
  if (fields_.strip_accents) {
    order_marks();
    std::erase_if(characters_, [](char32_t c) { return is(c, kBertMark); });
  }
  if (!fields_.lowercase) return;
  lower_.clear();
  for (const char32_t c : characters_) {
    const std::u32string_view lower = lower_case(c);
    if (lower.empty()) {
      lower_ += c;
    } else {
      lower_ += lower;
    }
  }
  characters_.swap(lower_);
}

void BertWords::decompose(char32_t c) {
  const char32_t syllable = c - kHangulBase;
  if (c >= kHangulBase && syllable < kHangulLCount * kHangulVCount * kHangulTCount) {
    const char32_t tail = syllable % kHangulTCount;
    characters_ += kHangulL + syllable / (kHangulVCount * kHangulTCount);
    characters_ += kHangulV + syllable / kHangulTCount % kHangulVCount;
    if (tail != 0) characters_ += kHangulT + tail;
    return;
  }
  const std::u32string_view parts = canonical_decomposition(c);
  if (parts.empty()) {
    characters_ += c;
  } else {
    characters_ += parts;
  }
}

/// Marks of one base by their combining class: those that are kept stay in canonical order.
void BertWords::order_marks() {
  const auto combining = [](char32_t c) { return properties(c).combining_class; };
  for (auto at = characters_.begin(); at != characters_.end();) {
    at = std::find_if(at, characters_.end(), [&](char32_t c) { return combining(c) != 0; });
    const auto end =
        std::find_if(at, characters_.end(), [&](char32_t c) { return combining(c) == 0; });
    std::stable_sort(at, end, [&](char32_t a, char32_t b) { return combining(a) < combining(b); });
    at = end;
  }
}

}  // namespace masque::text
