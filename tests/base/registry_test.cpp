// Items that register themselves: sorted by name, each name once.
#include "base/registry/registry.hpp"

#include <stdexcept>

#include <doctest/doctest.h>

namespace masque::test {
namespace {

struct Item {
  std::string name;
};

TEST_CASE("items are sorted by name and found by it") {
  Registry<Item> all;
  const Item b{"b"};
  all.add(b);
  all.add(std::make_unique<const Item>(Item{"a"}));
  CHECK(all.names() == "a, b");
  CHECK(all.find("b") == &b);
  CHECK(all.find("c") == nullptr);
}

TEST_CASE("a second item of a name is refused") {
  Registry<Item> all;
  all.add(std::make_unique<const Item>(Item{"a"}));
  CHECK_THROWS_AS(all.add(std::make_unique<const Item>(Item{"a"})), std::logic_error);
  CHECK(all.all().size() == 1);
}

}  // namespace
}  // namespace masque::test
