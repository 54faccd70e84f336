// Names in one text.
#include "base/string/name_list.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace masque {
namespace {

TEST_CASE("commas inside of parentheses belong to a name") {
  CHECK(split_names("x", "a, b(c=1, d=2),e") == std::vector<std::string>{"a", "b(c=1, d=2)", "e"});
  for (const char* wrong : {"", "a,", ",a", "a,,b", "a, a"}) {
    CHECK_THROWS_AS(split_names("x", wrong), UsageError);
  }
}

TEST_CASE("a word is found whole, wherever it stands") {
  for (const char* words : {"rope", "rope alibi", "alibi rope", "t5 rope none"})
    CHECK(has_word(words, "rope"));
  for (const char* words : {"", "rope_ntk", "xrope", "rop e", "rope_ntk xrope"})
    CHECK_FALSE(has_word(words, "rope"));
  // The first place is part of another word, the second is not.
  CHECK(has_word("rope_ntk rope", "rope"));
}

}  // namespace
}  // namespace masque
