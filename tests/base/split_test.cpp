#include "base/string/split.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace masque;

using Parts = std::vector<std::string_view>;

TEST_CASE("text is cut at separators, ends and blanks") {
  CHECK(trim("  a b ") == "a b");
  CHECK(trim("   ").empty());
  CHECK(trim("").empty());
  CHECK(trim("\t a\r", kBlanksOfLine) == "a");
  CHECK(split("", ',') == Parts{""});
  CHECK(split("a,,b,", ',') == Parts{"a", "", "b", ""});
  CHECK(split_terminated("", '\n').empty());
  CHECK(split_terminated("a\n\nb", '\n') == Parts{"a", "", "b"});
  CHECK(split_terminated("\n", '\n') == Parts{""});
  CHECK(split_at_blanks(" a\t b ", kBlanksOfLine) == Parts{"a", "b"});
  CHECK(split_at_blanks(" ", kBlanksOfLine).empty());
  CHECK(split_in_two("a=b", '=') == std::pair<std::string_view, std::string_view>("a", "b"));
  CHECK(!split_in_two("a=b=c", '='));
  CHECK(!split_in_two("a", '='));
  using Named = std::pair<std::string_view, std::optional<std::string_view>>;
  CHECK(split_at_first("a:b:c", ':') == Named("a", "b:c"));
  CHECK(split_at_last("a:b:c", ':') == Named("a:b", "c"));
  CHECK(split_at_first("a:", ':') == Named("a", ""));
  CHECK(split_at_first("a", ':') == Named("a", std::nullopt));
  CHECK(split_at_last("", ':') == Named("", std::nullopt));
  CHECK(without_return("a\r") == "a");
  Parts lines;
  for_each_line("a\n\nb", [&](std::string_view line) { lines.push_back(line); });
  CHECK(lines == Parts{"a", "", "b"});
}
