#include "base/processor/processor.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace masque::test {
namespace {

TEST_CASE("the processor's instruction sets have names, and only these can be chosen") {
  const std::vector<std::string> names = instruction_set_names();
  REQUIRE(!names.empty());
  CHECK(names.back() == name_of(best_instruction_set()));
  CHECK(std::ranges::find(names, name_of(instruction_set())) != names.end());
  CHECK_THROWS_AS(limit_instruction_set("mmx"), UsageError);
  CHECK_THROWS_AS(limit_instruction_set(""), UsageError);
}

}  // namespace
}  // namespace masque::test
