#include "base/string/split.hpp"

#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/string/name_list.hpp"
#include "base/string/parse_number.hpp"

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

TEST_CASE("a number is the whole text or none") {
  CHECK(parse_number<int>("-12") == -12);
  CHECK(parse_number<double>("1e-3") == 1e-3);
  CHECK(!parse_number<int>(""));
  CHECK(!parse_number<int>("12x"));
  CHECK(!parse_number<int>(" 1"));
  CHECK(!parse_number<int>("+1"));
  CHECK(!parse_number<int>("99999999999"));
  CHECK(!parse_number<unsigned>("-1"));
  CHECK(!parse_number<double>("1,5"));
  std::string_view text = "12 rest";
  CHECK(take_number<int>(text) == 12);
  CHECK(text == " rest");
  CHECK(!take_number<int>(text));
  CHECK(text == " rest");
}

TEST_CASE("commas inside of parentheses belong to a name") {
  CHECK(split_names("x", "a, b(c=1, d=2),e") == std::vector<std::string>{"a", "b(c=1, d=2)", "e"});
  for (const char* wrong : {"", "a,", ",a", "a,,b", "a, a"}) {
    CHECK_THROWS_AS(split_names("x", wrong), UsageError);
  }
}
