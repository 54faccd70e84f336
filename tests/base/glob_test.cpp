#include "base/file/glob.hpp"

#include <doctest/doctest.h>

namespace masque::test {

TEST_CASE("stars and question marks") {
  CHECK(matches_glob("abc", "abc"));
  CHECK_FALSE(matches_glob("abc", "abcd"));
  CHECK_FALSE(matches_glob("abcd", "abc"));
  CHECK(matches_glob("*", ""));
  CHECK(matches_glob("", ""));
  CHECK_FALSE(matches_glob("", "a"));
  CHECK_FALSE(matches_glob("?", ""));
  CHECK(matches_glob("a?c", "abc"));
  CHECK(matches_glob("*.bias", "encoder.layer.0.bias"));
  CHECK_FALSE(matches_glob("*.bias", "encoder.layer.0.bias.more"));
  CHECK(matches_glob("*layer.1.*", "encoder.layer.1.output.weight"));
  CHECK_FALSE(matches_glob("*layer.1.*", "encoder.layer.11.output.weight"));
  CHECK(matches_glob("a*b*c", "aXbXbc"));
  CHECK_FALSE(matches_glob("a*b*c", "aXbXbd"));
  CHECK(matches_glob("**?", "x"));
  CHECK(matches_glob("[a]", "[a]"));
}

}  // namespace masque::test
