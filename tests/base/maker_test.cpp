// Variants that are made by name, with arguments.
#include "base/registry/maker.hpp"

#include <array>

#include <doctest/doctest.h>

#include "support/message.hpp"

namespace masque {
namespace {

struct Shape {
  Index sides;
};

constexpr std::array<Maker<Shape>, 2> kShapes{
    {{"star",
      [](NamedArguments& arguments) {
        return std::make_unique<Shape>(Shape{2 * arguments.count("points", 5, 3, 9)});
      }},
     {"circle", [](NamedArguments&) { return std::make_unique<Shape>(Shape{0}); }}}};

Index sides_of(std::string_view text) {
  NamedArguments arguments(text);
  return Makers<Shape>(kShapes).make("shape", arguments)->sides;
}

TEST_CASE("a variant is made with its arguments, or what they are without") {
  CHECK(Makers<Shape>(kShapes).names() == std::vector<std::string>{"circle", "star"});
  CHECK(sides_of("star(points=7)") == 14);
  CHECK(sides_of("star") == 10);
  CHECK(sides_of("circle") == 0);
}

TEST_CASE("unknown names and arguments are refused") {
  const auto message = [](std::string_view text) {
    return test::message_of<UsageError>([&] { sides_of(text); });
  };
  CHECK(message("stat") == "there is no shape 'stat', only circle, star; did you mean 'star'?");
  CHECK(test::contains(message("star(point=7)"), "points"));
  CHECK(test::contains(message("circle(points=7)"), "points"));
  CHECK(test::contains(message("star(points=10)"), "9"));
}

}  // namespace
}  // namespace masque
