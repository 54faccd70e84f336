// Lists, counts and limits as messages have them.
#include "base/string/comma_list.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace masque {
namespace {

using Names = std::vector<std::string>;

struct Named {
  std::string name;
};

TEST_CASE("lists have commas between, and a word before the last of several possibilities") {
  CHECK(comma_list(Names{}).empty());
  CHECK(comma_list(Names{"a"}) == "a");
  CHECK(comma_list(Names{"a", "b", "c"}) == "a, b, c");
  CHECK(comma_list(std::vector<Named>{{"a"}, {"b"}}, &Named::name) == "a, b");
  CHECK(or_list(Names{}).empty());
  CHECK(or_list(Names{"a"}) == "a");
  CHECK(or_list(Names{"a", "b"}) == "a or b");
  CHECK(or_list(Names{"a", "b", "c"}) == "a, b or c");
}

TEST_CASE("one of a thing has no s") {
  CHECK(counted(0, "line") == "0 lines");
  CHECK(counted(std::uint64_t{1}, "line") == "1 line");
  CHECK(counted(2, "line") == "2 lines");
}

TEST_CASE("a limit is named with what it leaves out") {
  CHECK(limit_note("text", 5, 32, "tokens are read", "eval_tokens") ==
        "text: the first 5 of 32 tokens are read; a larger " + field("eval_tokens") +
            " reads more");
}

}  // namespace
}  // namespace masque
