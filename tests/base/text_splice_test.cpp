#include "base/string/text_splice.hpp"

#include <doctest/doctest.h>

namespace masque::test {
namespace {

TEST_CASE("edits are made at once, in any order of asking") {
  TextSplice splice;
  CHECK(splice.empty());
  splice.replace(4, 5, "EE");
  splice.replace(0, 1, "");
  splice.replace(2, 2, "+");
  CHECK_FALSE(splice.empty());
  CHECK(splice.apply("abcdef") == "b+cdEEf");
}

TEST_CASE(
    "an insertion comes before an edit at the same place, insertions in the order of asking") {
  TextSplice splice;
  splice.replace(1, 3, "X");
  splice.replace(1, 1, "1");
  splice.replace(1, 1, "2");
  splice.replace(4, 4, "end");
  CHECK(splice.apply("abcd") == "a12Xdend");
}

TEST_CASE("a part of a text, with the edits in it") {
  TextSplice splice;
  splice.replace(3, 4, "-");
  CHECK(splice.apply("abcdef", 2, 5) == "c-e");
  CHECK(TextSplice().apply("abcdef", 2, 5) == "cde");
}

}  // namespace
}  // namespace masque::test
