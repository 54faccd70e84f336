// Nothing that a terminal would obey gets through escape().
#include "base/escape.hpp"

#include <random>
#include <string>

#include <doctest/doctest.h>

namespace masque {
namespace {

using namespace std::string_view_literals;

int length_of(std::string_view text) {
  char32_t c = 0;
  return decode_utf8(text, c);
}

char32_t code_point_of(std::string_view text) {
  char32_t c = 0;
  CHECK(decode_utf8(text, c) == static_cast<int>(text.size()));
  return c;
}

TEST_CASE("ordinary text of any script stays as it is") {
  for (const auto text : {""sv, "bert.embeddings"sv, "a b~"sv, "größe"sv, "埋め込み"sv, "🙂"sv,
                          "\xC2\xA0"sv, "\xF4\x8F\xBF\xBF"sv, "'\"<>&"sv}) {
    CHECK(escape(text) == text);
  }
}

TEST_CASE("control characters and the backslash are spelled out") {
  CHECK(escape("a\nb") == "a\\nb");
  CHECK(escape("a\tb") == "a\\tb");
  CHECK(escape("a\\b") == "a\\\\b");
  CHECK(escape("\r") == "\\x0d");
  CHECK(escape("\x1b[31m") == "\\x1b[31m");
  CHECK(escape("\0x"sv) == "\\x00x");
  CHECK(escape("\x7f") == "\\x7f");
  CHECK(escape("\xC2\x80") == "\\u{80}");
  CHECK(escape("\xC2\x9B") == "\\u{9b}");  // CSI of the C1 set
  CHECK(escape("\xC2\x9F") == "\\u{9f}");
}

TEST_CASE("bidirectional controls and line separators are spelled out") {
  CHECK(escape("\u061C") == "\\u{61c}");
  CHECK(escape("\u200E\u200F") == "\\u{200e}\\u{200f}");
  CHECK(escape("\u2028\u2029") == "\\u{2028}\\u{2029}");
  CHECK(escape("\u202A\u202B\u202C\u202D\u202E") ==
        "\\u{202a}\\u{202b}\\u{202c}\\u{202d}\\u{202e}");
  CHECK(escape("\u2066\u2067\u2068\u2069") == "\\u{2066}\\u{2067}\\u{2068}\\u{2069}");
  CHECK(escape("\uFEFFx") == "\\u{feff}x");
}

TEST_CASE("bytes that are not UTF-8 are spelled out one by one") {
  CHECK(escape("a\x80z") == "a\\x80z");
  CHECK(escape("\xC3") == "\\xc3");
  CHECK(escape("\xC3(") == "\\xc3(");
  CHECK(escape("\xE2\x82") == "\\xe2\\x82");
  CHECK(escape("\xC0\x8A") == "\\xc0\\x8a");           // an overlong newline
  CHECK(escape("\xE0\x80\x8A") == "\\xe0\\x80\\x8a");  // another
  CHECK(escape("\xF0\x80\x80\x8A") == "\\xf0\\x80\\x80\\x8a");
  CHECK(escape("\xED\xA0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(escape("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // U+110000
  CHECK(escape("\xFF\xFE") == "\\xff\\xfe");
}

TEST_CASE("the ends of each length of UTF-8 decode") {
  CHECK(code_point_of("\x7F") == 0x7F);
  CHECK(code_point_of("\xC2\x80") == 0x80);
  CHECK(code_point_of("\xDF\xBF") == 0x7FF);
  CHECK(code_point_of("\xE0\xA0\x80") == 0x800);
  CHECK(code_point_of("\xED\x9F\xBF") == 0xD7FF);
  CHECK(code_point_of("\xEE\x80\x80") == 0xE000);
  CHECK(code_point_of("\xEF\xBF\xBF") == 0xFFFF);
  CHECK(code_point_of("\xF0\x90\x80\x80") == 0x10000);
  CHECK(code_point_of("\xF4\x8F\xBF\xBF") == 0x10FFFF);
  CHECK(length_of("") == 0);
  CHECK(length_of("\xF5\x80\x80\x80") == 0);
  CHECK(length_of("\xE2\x28\xA1") == 0);
  CHECK(length_of("ab") == 1);
}

TEST_CASE("escaped text of any bytes is valid UTF-8 without controls") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int j = 0; j < 12; ++j) {
      // Mostly bytes that begin or continue sequences.
      text += static_cast<char>(random() % 4 == 0 ? random() % 128 : 128 + random() % 128);
    }
    const std::string shown = escape(text);
    CAPTURE(shown);
    for (std::string_view rest = shown; !rest.empty();) {
      char32_t c = 0;
      const int length = decode_utf8(rest, c);
      REQUIRE(length > 0);
      const bool harmless = c >= 0x20 && (c < 0x7F || c > 0x9F) && (c < 0x2028 || c > 0x202E);
      REQUIRE(harmless);
      rest.remove_prefix(static_cast<std::size_t>(length));
    }
  }
}

}  // namespace
}  // namespace masque
