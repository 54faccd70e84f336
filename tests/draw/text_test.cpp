// Widths, cutting and wrapping of text; the built-in letters; round numbers.
#include "draw/text.hpp"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "draw/png.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {
namespace {

TEST_CASE("characters are as wide as terminals draw them") {
  CHECK(columns_of(U'a') == 1);
  CHECK(columns_of(U'Ġ') == 1);
  CHECK(columns_of(U'▁') == 1);
  CHECK(columns_of(U'日') == 2);
  CHECK(columns_of(U'ト') == 2);
  CHECK(columns_of(U'한') == 2);
  CHECK(columns_of(U'！') == 2);
  CHECK(columns_of(U'😀') == 2);
  CHECK(columns_of(U'\u0301') == 0);
  CHECK(columns_of(U'\u200D') == 0);
  CHECK(text_columns("日本 ab") == 7);
  CHECK(text_columns("e\xCC\x81") == 1);
  CHECK(text_columns("\xFF\xFE") == 2);
  CHECK(text_columns("") == 0);
}

TEST_CASE("text that is too long ends in a mark and never exceeds its columns") {
  CHECK(shorten("abcdef", 6) == "abcdef");
  CHECK(shorten("abcdef", 5) == "abcd…");
  CHECK(shorten("abcdef", 5, "..") == "abc..");
  CHECK(shorten("abcdef", 1) == "…");
  CHECK(shorten("abcdef", 1, "..") == ".");
  CHECK(shorten("abcdef", 0).empty());
  CHECK(shorten("日本語", 6) == "日本語");
  CHECK(shorten("日本語", 5) == "日本…");
  CHECK(shorten("日本語", 4) == "日…");  // half a character is none
  CHECK(shorten("ae\xCC\x81", 2) == "ae\xCC\x81");
  CHECK(shorten("abe\xCC\x81x", 3) == "ab…");
}

TEST_CASE("text is wrapped at spaces, long words are cut, more lines are shortened away") {
  using Lines = std::vector<std::string>;
  CHECK(wrap("one two three", 7, 9) == Lines{"one two", "three"});
  CHECK(wrap("one two three", 8, 9) == Lines{"one two", "three"});
  CHECK(wrap("one  two", 3, 9) == Lines{"one", "two"});
  CHECK(wrap("abcdefgh", 3, 9) == Lines{"abc", "def", "gh"});
  CHECK(wrap("one two three", 5, 2) == Lines{"one", "two …"});
  CHECK(wrap("日本語", 1, 9) == Lines{"日", "本", "語"});
  CHECK(wrap("", 5, 9).empty());
}

TEST_CASE("beyond ASCII is a question mark a column") {
  CHECK(ascii_only("aé日\xCC\x81") == "a???");
  CHECK(ascii_only("\xFF") == "?");
}

TEST_CASE("every ASCII letter has its own picture, and others are boxes as wide as they are") {
  const auto picture = [](char32_t c) {
    std::string dots;
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x) dots += glyph_dot(c, x, y) ? '#' : '.';
    }
    return dots;
  };
  for (char32_t a = 0x20; a < 0x7F; ++a) {
    CHECK((picture(a).find('#') == std::string::npos) == (a == 0x20));
    CHECK(glyph_width(a) == kGlyphWidth);
    CHECK(picture(a) != picture(U'日'));
    for (char32_t b = a + 1; b < 0x7F; ++b) CHECK(picture(a) != picture(b));
  }
  CHECK(picture(U'T') == "#####..#....#....#....#....#....#....#............");
  CHECK(picture(U'_') == "........................................#####.....");
  CHECK(picture(U'…').find('#') != std::string::npos);
  CHECK(picture(U'Ġ') != picture(U'日'));
  CHECK(glyph_width(U'日') == kGlyphAdvance + kGlyphWidth);
  CHECK(glyph_width(U'ß') == kGlyphWidth);
  CHECK(glyph_width(U'\u0301') == 0);
  for (int x = 0; x < glyph_width(U'日'); ++x) {
    CHECK(glyph_dot(U'日', x, 0));
    CHECK(glyph_dot(U'日', x, 3) == (x == 0 || x == glyph_width(U'日') - 1));
  }
  CHECK(!glyph_dot(U'T', -1, 0));
  CHECK(!glyph_dot(U'T', 5, 0));
  CHECK(!glyph_dot(U'T', 0, kGlyphHeight));
}

std::string list(const std::vector<Tick>& ticks) {
  std::string text;
  for (const Tick& tick : ticks) text += (text.empty() ? "" : " ") + tick.text;
  return text;
}

TEST_CASE("steps are round") {
  CHECK(round_step(0.1) == 1);
  CHECK(round_step(1) == 1);
  CHECK(round_step(1.1) == 2);
  CHECK(round_step(3) == 5);
  CHECK(round_step(51) == 100);
  CHECK(round_step(1e15) == 1'000'000'000'000'000);
}

TEST_CASE("numbers along an axis are round and written shortly") {
  CHECK(list(linear_ticks(0, 1, 5)) == "0 0.2 0.4 0.6 0.8 1");
  CHECK(list(linear_ticks(0.05, 0.32, 6)) == "0.05 0.1 0.15 0.2 0.25 0.3");
  CHECK(list(linear_ticks(-3, 3, 7)) == "-3 -2 -1 0 1 2 3");
  CHECK(list(linear_ticks(0, 4096, 5)) == "0 1000 2000 3000 4000");
  CHECK(list(linear_ticks(0, 3e-7, 3)) == "0 1e-07 2e-07 3e-07");
  CHECK(list(linear_ticks(1, 1, 5)).empty());
  CHECK(list(linear_ticks(0, std::numeric_limits<double>::infinity(), 5)).empty());
  CHECK(list(linear_ticks(0, std::nan(""), 5)).empty());
}

TEST_CASE("logarithmic axes have powers of ten, and what is between where there are few") {
  CHECK(list(log_ticks(1, 100, 8)) == "1 2 5 10 20 50 100");
  CHECK(list(log_ticks(0.03, 2, 8)) == "0.05 0.1 0.2 0.5 1 2");
  CHECK(list(log_ticks(1, 1e6, 8)) == "1 10 100 1000 10000 100000 1000000");
  CHECK(list(log_ticks(1e-12, 1e12, 5)) == "1e-10 1e-05 1 100000 1e+10");
  CHECK(list(log_ticks(11, 14, 4)) == "11 12 13 14");
  CHECK(list(log_ticks(0, 10, 5)).empty());
}

}  // namespace
}  // namespace masque::draw
