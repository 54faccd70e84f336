// Distances, and when a suggestion is made.
#include "base/edit_distance.hpp"

#include <algorithm>
#include <array>

#include <doctest/doctest.h>

namespace masque {
namespace {

TEST_CASE("every kind of typing error counts one") {
  CHECK(edit_distance("check", "check") == 0);
  CHECK(edit_distance("check", "chekc") == 1);   // swapped
  CHECK(edit_distance("check", "chck") == 1);    // left out
  CHECK(edit_distance("check", "checkk") == 1);  // doubled
  CHECK(edit_distance("check", "chock") == 1);   // replaced
}

TEST_CASE("the distance is symmetric and counts several errors") {
  CHECK(edit_distance("", "") == 0);
  // With a limit: the same, or one more than it.
  const auto word = [](int number) {
    std::u32string out;
    for (; number > 0; number /= 4) out += U"abca"[number % 4];
    return out;
  };
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; b += 7) {
      const int whole = edit_distance(word(a), word(b));
      for (int most = 0; most < 4; ++most)
        CHECK(edit_distance(word(a), word(b), most) == std::min(whole, most + 1));
    }
  }
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sitting", "kitten") == 3);
  CHECK(edit_distance("ab", "ba") == 1);
  CHECK(edit_distance("ca", "abc") == 3);  // a swapped pair is not edited again
  CHECK(edit_distance("abcd", "badc") == 2);
}

TEST_CASE("the nearest name is suggested when it is near enough") {
  const std::array<std::string_view, 4> names = {"check", "convert", "diff", "ls"};
  CHECK(nearest("chekc", names) == "check");
  CHECK(nearest("convrt", names) == "convert");
  CHECK(nearest("diff", names) == "diff");
  CHECK(nearest("l", names) == "ls");
  CHECK(nearest("lx", names) == "ls");
  CHECK(nearest("dofg", names) == std::nullopt);  // two of four letters wrong
  CHECK(nearest("frobnicate", names) == std::nullopt);
  CHECK(nearest("", names) == std::nullopt);
  CHECK(nearest("check", {}) == std::nullopt);
}

TEST_CASE("of equally near names the first is suggested") {
  const std::array<std::string_view, 2> names = {"layer.1.bias", "layer.2.bias"};
  CHECK(nearest("layer.3.bias", names) == "layer.1.bias");
}

}  // namespace
}  // namespace masque
