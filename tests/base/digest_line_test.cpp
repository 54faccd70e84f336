// Text that says whether it was changed.
#include "base/input/digest_line.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"

namespace masque {
namespace {

TEST_CASE("a last line has the digest of those before") {
  for (const std::string text : {"", "a\n", "a\tb\n\nc\n"}) {
    const std::string whole = with_digest_line(text);
    CHECK(whole.starts_with(text + "# xxh3 "));
    CHECK(without_digest_line(whole, "file") == text);
    need_digest_line(whole, "file");
    CHECK(without_digest_line(text, "file") == text);  // of an earlier version
    CHECK_THROWS_AS(need_digest_line(text, "file"), InputError);
  }
}

TEST_CASE("each changed byte of the lines or of their digest is found") {
  const std::string whole = with_digest_line("a\tb\nc\n");
  const std::size_t digest = whole.find("# xxh3 ") + 7;
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    if (whole[i] == '\n' || (i >= digest - 7 && i < digest)) continue;
    std::string other = whole;
    other[i] = other[i] == '0' ? '1' : '0';
    CAPTURE(i);
    CHECK(test::contains(test::message_of([&] { without_digest_line(other, "file"); }),
                         "file: was changed since it was written"));
  }
  CHECK_THROWS_AS(need_digest_line(whole.substr(0, whole.size() - 1), "file"), InputError);
}

TEST_CASE("an object has the digest of its other members") {
  const std::string json = "{\n  \"a\": 1,\n  \"b\": 2\n}\n";
  const std::string whole = with_digest_member(json);
  check_digest_member(whole, "file");
  check_digest_member(json, "file");
  std::string other = whole;
  other[other.find('1')] = '3';
  CHECK_THROWS_AS(check_digest_member(other, "file"), InputError);
}

}  // namespace
}  // namespace masque
