// The fast way through BERT's first two steps against the steps themselves.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "text/part_results.hpp"
#include "text/step/bert.hpp"

namespace masque::text {
namespace {

const char* name(bool value) { return value ? "true" : "false"; }

Parts steps(const BertOptions& o) {
  return {fmt::format(R"({{"type":"BertNormalizer","clean_text":{},"handle_chinese_chars":{},)"
                      R"("strip_accents":{},"lowercase":{}}})",
                      name(o.clean_text), name(o.handle_chinese_chars), name(o.strip_accents),
                      name(o.lowercase)),
          R"({"type":"BertPreTokenizer"})"};
}

TEST_CASE("bert_words finds the words of the two steps, with all options") {
  std::string words;
  std::vector<std::uint32_t> ends;
  for (int bits = 0; bits < 16; ++bits) {
    const BertOptions options{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    CAPTURE(bits);
    const Parts parts = steps(options);
    for (const std::string set : {"random", "most"}) {
      bool same = true;
      for_each_string(set, [&](std::string_view text) {
        bert_words(text, options, words, ends);
        const auto expected = parts.words(text);
        same = same && ends.size() == expected.size();
        std::uint32_t begin = 0;
        for (std::size_t k = 0; same && k < ends.size(); ++k) {
          same = words.substr(begin, ends[k] - begin) == expected[k].text;
          begin = ends[k];
        }
        same = same && begin == words.size();
      });
      CHECK(same);
    }
  }
}

TEST_CASE("bert_words: texts that grow, and texts that are nothing") {
  std::string words;
  std::vector<std::uint32_t> ends;
  bert_words("", {}, words, ends);
  CHECK(ends.empty());
  bert_words(" \t\n\xC2\xAD", {}, words, ends);
  CHECK(ends.empty());
  CHECK(words.empty());
  std::string text;
  std::string expected;
  for (int i = 0; i < 10000; ++i) {
    text += "\xED\x95\x9C";  // a syllable becomes three letters
    expected += "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB";
  }
  bert_words(text, {}, words, ends);
  CHECK(words == expected);
  CHECK(ends == std::vector<std::uint32_t>{90000});
}

}  // namespace
}  // namespace masque::text
