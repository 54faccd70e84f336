// Names with arguments, and what is wrong with others.
#include "base/string/named_arguments.hpp"

#include <array>

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace masque::test {
namespace {

TEST_CASE("arguments of a spelled variant, and what was not given") {
  NamedArguments arguments(
      " some_name ( count = 7, ratio=0.5,wide=true, inner=other(a=1, b=2),kind=b) ");
  CHECK(arguments.name() == "some_name");
  CHECK(arguments.count("count", 3, 1, 10) == 7);
  CHECK(arguments.number("ratio", 2, 0, 1) == 0.5);
  CHECK(arguments.flag("wide", false));
  CHECK(arguments.text("inner", "none") == "other(a=1, b=2)");
  constexpr std::array<std::string_view, 2> kKinds = {"a", "b"};
  CHECK(arguments.choice("kind", "a", kKinds) == "b");
  CHECK(arguments.count("more", 5, 1, 10) == 5);
  CHECK_FALSE(arguments.flag("tall", false));
  arguments.check_all_known();
  CHECK(arguments.standards() ==
        "count=3, ratio=2, wide=false, inner=none, kind=a, more=5, tall=false");
  CHECK(NamedArguments("bare").name() == "bare");
  CHECK(NamedArguments("bare()").standards().empty());
}

std::string parse_error(std::string_view text) {
  try {
    const NamedArguments arguments(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("text that is no spelled variant") {
  CHECK(parse_error("") == "'': a name was expected, with or without (key=value, …)");
  CHECK(parse_error("a b").ends_with("a name was expected, with or without (key=value, …)"));
  CHECK(parse_error("a(b=1") == "'a(b=1': a closing parenthesis was expected at the end");
  CHECK(parse_error("a(1)") == "'a(1)': key=value was expected between commas");
  CHECK(parse_error("a(b=1,)") == "'a(b=1,)': key=value was expected after the last comma");
  CHECK(parse_error("a(b=1,b=2)") == "'a(b=1,b=2)': b is given twice");
  CHECK(parse_error("a(b=c(d)") == "'a(b=c(d)': the parentheses are not balanced");
}

TEST_CASE("values that are none, and arguments that nobody knows") {
  NamedArguments arguments("a(n=0,x=nan,f=yes,k=c,other=1)");
  const auto error = [](auto&& ask) -> std::string {
    try {
      ask();
    } catch (const UsageError& e) {
      return e.what();
    }
    return "accepted";
  };
  CHECK(error([&] { arguments.count("n", 1, 1, 9); }) ==
        "a: n is '0', expected a whole number from 1 to 9");
  CHECK(error([&] { arguments.number("x", 1, 0, 9); }) ==
        "a: x is 'nan', expected a number from 0 to 9");
  CHECK(error([&] { arguments.flag("f", true); }) == "a: f is 'yes', expected true or false");
  constexpr std::array<std::string_view, 2> kKinds = {"a", "b"};
  CHECK(error([&] { arguments.choice("k", "a", kKinds); }) == "a: k is 'c', expected one of a, b");
  CHECK(error([&] { arguments.check_all_known(); }) ==
        "a has no parameter 'other', only n, x, f, k");
  CHECK(error([] { NamedArguments("b(c=1)").check_all_known(); }) ==
        "b has no parameter 'c', nor any other");
}

}  // namespace
}  // namespace masque::test
