#include "text/bert.hpp"

#include "text/normal_form.hpp"
#include "text/rewriter.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

/// Rewrites the characters that change(c) is true of by write(rewriter, c); the others stay.
template <typename Changes, typename Write>
void rewrite(AlignedText& text, const Changes& changes, const Write& write) {
  const std::string_view old = text.text;
  Rewriter rewriter(text);
  bool changed = false;
  for (std::size_t i = 0; i < old.size();) {
    const std::size_t begin = i;
    const char32_t c = next_char(old, i);
    if (!changes(c)) continue;
    rewriter.keep(begin);
    write(rewriter, c);
    changed = true;
  }
  if (!changed) return;
  rewriter.keep(old.size());
  rewriter.finish();
}

}  // namespace

void lower(AlignedText& text) {
  rewrite(
      text, [](char32_t c) { return !lower_case(c).empty(); },
      [](Rewriter& rewriter, char32_t c) {
        const std::u32string_view parts = lower_case(c);
        for (std::size_t i = 0; i < parts.size(); ++i) rewriter.put(parts[i], i == 0 ? 0 : 1);
      });
}

void bert_normalize(AlignedText& text, const BertOptions& options) {
  if (options.clean_text) {
    filter(text, [](char32_t c) { return !is(c, kBertRemoved); });
    rewrite(
        text, [](char32_t c) { return is(c, kBertSpace); },
        [](Rewriter& rewriter, char32_t) { rewriter.put(U' ', 0); });
  }
  if (options.handle_chinese_chars) {
    rewrite(
        text, [](char32_t c) { return is(c, kChinese); },
        [](Rewriter& rewriter, char32_t c) {
          rewriter.put(U' ', 0);
          rewriter.put(c, 1);
          rewriter.put(U' ', 1);
        });
  }
  if (options.strip_accents) {
    normalize(text, NormalForm::kNfd);
    filter(text, [](char32_t c) { return !is(c, kBertMark); });
  }
  if (options.lowercase) lower(text);
}

}  // namespace masque::text
