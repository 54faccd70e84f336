// Regular expressions: what is found, what is refused and why, and where a search ends.
#include "base/string/regex.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"

namespace masque {
namespace {

void refuse(const std::string& why) { throw InputError("x", why); }

constexpr auto kOniguruma = RegexDialect::kOniguruma;
constexpr auto kPerl = RegexDialect::kPerl;

std::string why_not(const std::string& expression, RegexDialect dialect = kOniguruma) {
  return test::message_of<InputError>([&] { Regex(expression, dialect, refuse); });
}

TEST_CASE("a search finds matches and groups from a place on") {
  const Regex regex(R"((\p{L}+)(\d)?)", kOniguruma, refuse);
  const std::string text = "é1 bc";
  RegexSearch search(regex, text);
  REQUIRE(search.find(0));
  CHECK(search.begin() == 0);
  CHECK(search.end() == 3);
  CHECK(search.groups() == 3);
  CHECK(search.group(1) == "é");
  CHECK(search.group(2) == "1");
  REQUIRE(search.find(search.end()));
  CHECK(search.group(0) == "bc");
  CHECK_FALSE(search.group(2));
  CHECK_FALSE(search.group(3));
  CHECK_FALSE(search.find(text.size()));
  RegexSearch empty(regex, {});
  CHECK_FALSE(empty.find(0));
}

TEST_CASE("bytes of any kind are text for Perl's dialect") {
  const Regex regex("a(.)$", kPerl, refuse);
  RegexSearch search(regex, "\xC3 a\xFF");
  REQUIRE(search.find(0));
  CHECK(search.group(1) == "\xFF");
  const Regex unicode("a", kOniguruma, refuse);
  CHECK(test::message_of<InputError>([&] { RegexSearch(unicode, "\xC3"); }) ==
        "x: a text that is not UTF-8");
}

TEST_CASE("an expression is refused with its reason, safe to print") {
  CHECK(why_not("(") == "x: end pattern with unmatched parenthesis");
  CHECK(why_not("[a") == "x: premature end of char-class");
  CHECK(why_not("\\p{\x1b[0m}").find('\x1b') == std::string::npos);
  CHECK(why_not("\xFF\xFE") == "x: not UTF-8");
  CHECK(why_not(std::string(65537, 'a')) == "x: 65537 bytes, expected at most 65536");
  CHECK(why_not(std::string(2000, '(') + std::string(2000, ')')) == "x: parse depth limit over");
}

TEST_CASE("a search ends") {
  const Regex slow("(a+)+b", kPerl, refuse);
  const std::string text = std::string(40, 'a') + "c";
  RegexSearch search(slow, text);
  CHECK(test::message_of<InputError>([&] { search.find(0); }) ==
        "x: takes too long on a text of 41 bytes (retry-limit-in-match over)");
}

TEST_CASE("all searches through a text together end") {
  // Half a million steps for each word, which a search alone may take.
  const Regex slow("(?:(a+)+b|a+c)", kPerl, refuse);
  std::string text;
  for (int i = 0; i < 400; ++i) text += std::string(18, 'a') + "c ";
  RegexSearch search(slow, text);
  std::size_t found = 0;
  const std::string message = test::message_of<InputError>([&] {
    for (std::size_t at = 0; search.find(at); at = search.end()) ++found;
  });
  CHECK(message == "x: takes too long on a text of 8000 bytes (retry-limit-in-search over)");
  CHECK(found > 10);
  CHECK(found < 400);
  RegexSearch other(slow, text);
  CHECK(other.find(0));
}

TEST_CASE("searches that need few steps are not limited by their number") {
  const Regex words(R"(\w+|\s+?(?!\S)| )", kOniguruma, refuse);
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += i % 7 == 0 ? "   " : "ab ";
  RegexSearch search(words, text);
  std::size_t at = 0;
  while (at < text.size() && search.find(at)) at = search.end();
  CHECK(at == text.size());
}

}  // namespace
}  // namespace masque
