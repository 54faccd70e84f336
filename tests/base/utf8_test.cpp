// Ill-formed UTF-8: where it begins, and what stands for it.
#include "base/string/utf8.hpp"

#include <doctest/doctest.h>

namespace masque::test {
namespace {

std::string replaced(std::string_view text, std::uint64_t expected) {
  std::string out;
  CHECK(append_replacing_invalid(text, out) == expected);
  return out;
}

constexpr const char* kStandIn = "\xEF\xBF\xBD";

std::string stand_ins(int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += kStandIn;
  return out;
}

TEST_CASE("every maximal subpart becomes one stand-in") {
  CHECK(replaced("plain äöü 汉字 😀", 0) == "plain äöü 汉字 😀");
  CHECK(replaced("", 0).empty());
  // The example of the Unicode standard, table 3-8.
  CHECK(replaced("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", 6) ==
        "a" + stand_ins(3) + "b" + kStandIn + "c" + stand_ins(2) + "d");
  CHECK(replaced("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 8) == stand_ins(8) + "A");
  CHECK(replaced("\xED\xA0\x80", 3) == stand_ins(3));  // a surrogate
  CHECK(replaced("\xF4\x91\x92\x93\xFF", 5) == stand_ins(5));
  CHECK(replaced("\xE6\xB1", 1) == kStandIn);  // cut short
}

TEST_CASE("the valid prefix ends where the first ill-formed sequence begins") {
  for (std::size_t before = 0; before < 20; ++before) {
    const std::string good(before, 'x');
    CHECK(valid_utf8_prefix(good + "ä") == before + 2);
    CHECK(valid_utf8_prefix(good + "\x80xxxxxxxxxx") == before);
  }
  CHECK(count_code_points("aä汉😀") == 4);
}

}  // namespace
}  // namespace masque::test
