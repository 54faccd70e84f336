// Distances, and when a suggestion is made.
#include "base/string/edit_distance.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/random/random.hpp"

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

// The recurrences as they stand in books, without the parts that both texts share taken away and
// without bits.
std::size_t table_of_distances(std::u32string_view a, std::u32string_view b, bool exchanges) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (exchanges && i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::size_t table_of_subsequences(std::u32string_view a, std::u32string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j)
      d[i][j] = a[i - 1] == b[j - 1] ? d[i - 1][j - 1] + 1 : std::max(d[i - 1][j], d[i][j - 1]);
  }
  return d[a.size()][b.size()];
}

TEST_CASE(
    "distances and common sequences are those of the table, around multiples of 64 characters, "
    "too") {
  Draw draw(5, "edit distance test");
  const auto text = [&](Index length, Index letters) {
    std::u32string out;
    for (Index i = 0; i < length; ++i)
      out += U"abcdefghij\U0001F600\u4e2d\u0439\u00e9xyzuvw"[draw.below(letters)];
    return out;
  };
  const std::array<Index, 13> lengths = {0, 1, 2, 7, 31, 63, 64, 65, 66, 128, 129, 150, 200};
  for (int round = 0; round < 12; ++round) {
    for (const Index m : lengths) {
      for (const Index n : lengths) {
        const Index letters = 2 + 3 * (round % 6);
        const std::u32string a = text(m, letters);
        const std::u32string b = text(n, letters);
        CHECK(edit_distance(a, b) == static_cast<int>(table_of_distances(a, b, true)));
        CHECK(edit_distance(a, b, Exchanges::kTwoEdits) ==
              static_cast<int>(table_of_distances(a, b, false)));
        CHECK(common_subsequence(a, b) == table_of_subsequences(a, b));
      }
    }
  }
  CHECK(edit_distance("ab", "ba", Exchanges::kTwoEdits) == 2);
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
