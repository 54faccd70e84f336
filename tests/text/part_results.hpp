// The results of normalizers and pre-tokenizers in the form of scripts/goldens/text_parts.py.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json/json.hpp"
#include "support/table.hpp"
#include "text/step/normalizer.hpp"
#include "text/step/pre_tokenizer.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

inline std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

/// Calls back with each string of a set: "random", "most" or "all".
inline void for_each_string(const std::string& set,
                            const std::function<void(std::string_view)>& use) {
  std::string text;
  if (set == "random") {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    for (const auto& row : test::read_table(MASQUE_TEST_DATA "/text/ranges.tsv", 2)) {
      const auto number = [](const std::string& s) {
        return static_cast<char32_t>(std::stoul(s, nullptr, 16));
      };
      ranges.emplace_back(number(row[0]), number(row[1]));
    }
    std::uint64_t state = 7;
    for (int i = 0; i < 20000; ++i) {
      text.clear();
      for (std::uint64_t left = 1 + splitmix(state) % 40; left > 0; --left) {
        const auto [first, last] = ranges[splitmix(state) % ranges.size()];
        append_utf8(text, first + static_cast<char32_t>(splitmix(state) % (last - first + 1)));
      }
      use(text);
    }
    return;
  }
  for (char32_t c = 0; c < 0x110000; ++c) {
    const bool outer = (c >= 0x32000 && c < 0xE0000) || c >= 0xE1000;
    if (!(c >= 0xD800 && c < 0xE000) && (set == "all" || !outer || c % 61 == 0)) {
      for (const char between : {'a', '1', '.', ' ', '\0'}) {
        append_utf8(text, c);
        if (between != '\0') text += between;
      }
    }
    if (c % 64 == 63 && !text.empty()) {
      use(text);
      text.clear();
    }
  }
}

/// A normalizer and a pre-tokenizer, as JSON; null for none.
class Parts {
 public:
  Parts(const std::string& normalizer, const std::string& pre_tokenizer)
      : normalizer_(make_normalizer(parse_json_file(normalizer, "n"), "n")),
        pre_tokenizer_(make_pre_tokenizer(parse_json_file(pre_tokenizer, "p"), "p")) {}

  std::vector<AlignedText> words(std::string_view text) const {
    std::vector<AlignedText> words{AlignedText::from(text)};
    if (normalizer_ != nullptr) normalizer_->apply(words[0]);
    if (words[0].text.empty()) words.clear();
    const bool first = !words.empty() && words[0].origin[0].begin == 0;
    if (pre_tokenizer_ != nullptr) pre_tokenizer_->split(words, first);
    return words;
  }

  /// Appends what the golden files hash.
  void result(std::string_view text, std::vector<std::uint32_t>& out) const {
    std::vector<std::uint32_t> chars(text.size() + 1);  // number of characters before a byte
    for (std::size_t i = 0; i < text.size(); ++i) {
      chars[i + 1] = chars[i] + ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80 ? 0 : 1);
    }
    for (const AlignedText& word : words(text)) {
      for (std::size_t i = 0; i < word.text.size();) {
        const std::size_t begin = i;
        const char32_t c = next_char(word.text, i);
        const Span span = word.span(begin, i);
        out.insert(out.end(), {c, chars[span.begin], chars[span.end]});
      }
      out.push_back(0xFFFFFFFF);
    }
  }

 private:
  std::shared_ptr<const Normalizer> normalizer_;
  std::shared_ptr<const PreTokenizer> pre_tokenizer_;
};

}  // namespace masque::text
