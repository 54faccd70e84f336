// Parts that are refused, damaged charsmaps, and texts made to be slow.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "text/part_results.hpp"
#include "text/step/charsmap.hpp"
#include "text/step/normal_form.hpp"

namespace masque::text {
namespace {

std::string error_of(const std::string& normalizer, const std::string& pre_tokenizer = "null") {
  std::string message;
  CHECK_THROWS_AS(
      try { Parts(normalizer, pre_tokenizer); } catch (const InputError& error) {
        message = error.what();
        throw;
      },
      InputError);
  return message;
}

TEST_CASE("unknown types and wrong fields are named") {
  CHECK(error_of(R"({"type":"Magic"})") == "n: normalizer 'Magic' is not supported");
  CHECK(error_of("null", R"({"type":"Chunks"})") == "p: pre-tokenizer 'Chunks' is not supported");
  CHECK(error_of("null", R"({"type":"FixedLength","length":0})") ==
        "p: pre-tokenizer 'FixedLength': 'length' is no positive number");
  CHECK(error_of("null", R"({"type":"CharDelimiterSplit","delimiter":"ab"})") ==
        "p: pre-tokenizer 'CharDelimiterSplit': 'delimiter' is not one character");
  CHECK(error_of(R"({"lowercase":true})") == "n: a normalizer without its type");
  CHECK(error_of("[]") == "n: a normalizer without its type");
  CHECK(error_of(R"({"type":"Strip","strip_left":true})") ==
        "n: normalizer 'Strip': 'strip_right' is missing");
  CHECK(error_of(R"({"type":"Strip","strip_left":1,"strip_right":true})") ==
        "n: normalizer 'Strip': 'strip_left' has the wrong type");
  CHECK(error_of(R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"X\u001b"}]})") ==
        "n: normalizer 'X\\x1b' is not supported");
  CHECK(error_of(R"({"type":"Sequence","normalizers":[null]})") ==
        "n: normalizer 'Sequence': a step is null");
  CHECK(error_of(R"({"type":"Precompiled","precompiled_charsmap":"a"})") ==
        "n: normalizer 'Precompiled': 'precompiled_charsmap' is not base64");
  CHECK(error_of("null", R"({"type":"Punctuation","behavior":"isolated"})") ==
        "p: pre-tokenizer 'Punctuation': an unknown 'behavior'");
  CHECK(error_of("null", R"({"type":"Metaspace","replacement":"ab"})") ==
        "p: pre-tokenizer 'Metaspace': 'replacement' is not one character");
  CHECK(error_of("null", R"({"type":"Metaspace","replacement":"_","add_prefix_space":false,)"
                         R"("prepend_scheme":"always"})") ==
        "p: pre-tokenizer 'Metaspace': 'add_prefix_space' contradicts 'prepend_scheme'");
}

TEST_CASE("regular expressions that are not valid are quoted") {
  for (const std::string regex : {"a|b", "a*", "(a)", "^a", ".", "a{2", "a{0,}", "a{2,3}", "[^a]",
                                  "[a-z]", "\\\\d", "ab", "a+?", "a{2}{3}"}) {
    CHECK_NOTHROW(
        Parts(R"({"type":"Replace","pattern":{"Regex":")" + regex + R"("},"content":""})", "null"));
  }
  for (const std::string regex : {"[]", "[a", "\\\\", "[[:a:]]", "(", "a)", "*", "\\\\p{X}",
                                  "(?<a>.)\\\\2", "(?<=a", "\\\\g<b>", "a{100001}"}) {
    CHECK(error_of(R"({"type":"Replace","pattern":{"Regex":")" + regex + R"("},"content":""})")
              .starts_with("n: normalizer 'Replace': the regular expression '"));
  }
  CHECK(error_of(R"({"type":"Replace","pattern":{"String":""},"content":""})") ==
        "n: normalizer 'Replace': 'pattern' is empty");
  CHECK(error_of(R"({"type":"Replace","pattern":"a","content":""})") ==
        "n: normalizer 'Replace': 'pattern' has the wrong type");
}

TEST_CASE("Metaspace of old files") {
  const Parts never("null", R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})");
  CHECK(never.words("a b")[0].text == "a");
  const Parts always("null", R"({"type":"Metaspace","replacement":"_","add_prefix_space":true})");
  CHECK(always.words("a b")[0].text == "_a");
}

std::string charsmap(const std::vector<std::uint32_t>& units, const std::string& strings) {
  std::string out;
  const auto put = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  };
  put(static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) put(unit);
  return out + strings;
}

TEST_CASE("a damaged charsmap is refused or matches nothing") {
  using namespace std::string_literals;
  CHECK_NOTHROW(Charsmap("", "f"));
  for (const std::string& bad : {"abc"s, "\0\0\0\0"s, "\5\0\0\0\0\0\0\0\0"s, "\4\0\0\0abc"s,
                                 charsmap({0}, "\xFF"), charsmap({0}, std::string(1001, 'x'))}) {
    CHECK_THROWS_AS(Charsmap(bad, "f"), InputError);
  }
  // The key "a": unit 0 leads to 96 = 'a' ^ 1, whose leaf stands at 1.
  std::vector<std::uint32_t> units(97);
  units[0] = 1U << 10;
  units[96] = 97U << 10 | 0x100 | 'a';
  units[1] = 0x80000000;
  const auto of = [&](const std::string& strings) {
    const Charsmap map(charsmap(units, strings), "f");
    const auto match = map.longest("ab");
    return match ? std::string(match->replacement) : "none";
  };
  CHECK(of("xyz\0q"s) == "xyz");
  CHECK(of("xyz") == "xyz");
  units[1] = 0x80000003;
  CHECK(of("xyz").empty());
  units[1] = 0x80000004;
  CHECK(of("xyz") == "none");
  units[1] = 0x80000001;
  CHECK(of("\xC3\xA9") == "none");
  units[96] = 0x1FFFFF00U << 1 | 0x300 | 'a';  // a leaf far outside
  CHECK(of("xyz") == "none");
  units[0] = 0xFFFFFFFF;
  CHECK(of("xyz") == "none");
  // Every value of one unit: never a walk out of the table.
  for (std::uint32_t high = 0; high < 4096; ++high) {
    units[0] = high << 20 | 0x200;
    units[96] = high << 10 | 0x300 | 'a';
    const Charsmap map(charsmap(units, "x"), "f");
    AlignedText text = AlignedText::from("aab");
    replace_graphemes(text, map);
    static_cast<void>(map.longest("aab"));
  }
}

TEST_CASE("the longest key of a charsmap, and the shortest for each grapheme") {
  std::vector<std::uint32_t> units(200);
  units[0] = 1U << 10;                                 // children of the root at 1
  units['a' ^ 1] = ('a' ^ 1 ^ 3) << 10 | 0x100 | 'a';  // children of "a" at 3
  units[3] = 0x80000000;
  units['b' ^ 3] = ('b' ^ 3 ^ 4) << 10 | 0x100 | 'b';  // children of "ab" at 4
  units[4] = 0x80000002;
  using namespace std::string_literals;
  const Charsmap map(charsmap(units, "A\0\xC3\x89\0"s), "f");
  REQUIRE(map.longest("abac"));
  CHECK(map.longest("abac")->length == 2);
  CHECK(map.longest("abac")->replacement == "\xC3\x89");
  REQUIRE(map.longest("ac"));
  CHECK(map.longest("ac")->replacement == "A");
  CHECK(!map.longest("c"));
  // Bytes that go on inside of a character: only the shorter key ends before it.
  CHECK(map.longest("ab\x80")->length == 1);
  CHECK(!map.longest("a\x80"));
  CHECK(map.shortest("a\x80")->length == 1);
  AlignedText other = AlignedText::from("abac");
  replace_graphemes(other, map);
  CHECK(other.text == "AbAc");
}

TEST_CASE("a megabyte of marks, newlines or quotes takes no more than linear time") {
  const auto repeat = [](std::string_view part) {
    std::string out;
    while (out.size() < 1000000) out += part;
    return out;
  };
  const Parts bert(R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)"
                   R"("strip_accents":null,"lowercase":true})",
                   R"({"type":"BertPreTokenizer"})");
  const Parts gpt2("null", R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})");
  for (const std::string_view part : {"\xCC\x81\xCC\xA3", "a\xCC\xA3\xCC\x81\xE0\xA3\x93", "\n ",
                                      "'", "' ", "\xE2\x80\x8D", "\xF0\x9F\x87\xA6", " "}) {
    const std::string text = repeat(part);
    for (const NormalForm form :
         {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd}) {
      AlignedText copy = AlignedText::from(text);
      normalize(copy, form);
      CHECK(copy.text.size() == copy.origin.size());
    }
    bert.words(text);
    gpt2.words(text);
  }
}

}  // namespace
}  // namespace masque::text
