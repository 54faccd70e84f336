// Values and their names.
#include "base/string/name_table.hpp"

#include <array>
#include <string>

#include <doctest/doctest.h>

#include "support/message.hpp"

namespace masque {
namespace {

enum class Fruit { kApple, kPear, kPlum };

constexpr std::array<std::pair<std::string_view, Fruit>, 3> kFruit{
    {{"apple", Fruit::kApple}, {"pear", Fruit::kPear}, {"plum", Fruit::kPlum}}};
constexpr NameTable<Fruit> kTable = kFruit;

TEST_CASE("a table of names is read in both directions") {
  for (const auto& [name, fruit] : kFruit) {
    CHECK(name_in(kTable, fruit) == name);
    CHECK(named_value("fruit", name, kTable) == fruit);
  }
  const std::array<std::string_view, 2> names{"plum", "apple"};
  CHECK(named_values("fruit", names, kTable) == std::vector{Fruit::kPlum, Fruit::kApple});
}

TEST_CASE("an unknown name is refused with those that there are") {
  const auto message = [](std::string_view name) {
    return test::message_of<UsageError>([&] { named_value("fruit", name, kTable); });
  };
  CHECK(message("peach") == "fruit: found 'peach', expected apple, pear or plum");
  CHECK(message("") == "fruit: found '', expected apple, pear or plum");
}

}  // namespace
}  // namespace masque
