// Settings of which every key is used, known to change nothing, or reported.
#include "base/json/json_settings.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

JsonSettings settings_of(const std::string& json) { return {parse_json_file(json, "f"), "f"}; }

TEST_CASE("members are read, null counts as absent, and what nobody asked for is named in order") {
  JsonSettings settings =
      settings_of(R"({"z":1,"flag":true,"n":7,"text":"a","none":null,"in":{"x":1,"y":2},"a":[]})");
  CHECK(settings.flag("flag", false));
  CHECK(settings.flag("absent", true));
  CHECK(settings.integer("n", 0, 7) == 7);
  CHECK(settings.integer("none", 0, 7) == std::nullopt);
  CHECK(settings.string("text") == "a");
  settings.need("text", "a");
  settings.need("absent", "a");
  JsonSettings inner = settings.object("in");
  CHECK(inner.integer("x", 0, 1) == 1);
  CHECK(inner.unknown() == std::vector<std::string>{"in.y"});
  CHECK(settings.object("none").empty());
  CHECK(settings.unknown() == std::vector<std::string>{"z", "a"});
  settings.ignore({"z", "a"});
  CHECK(settings.unknown().empty());
}

TEST_CASE("a member of another kind is refused with what it is") {
  JsonSettings settings = settings_of(R"({"n":8,"text":"a","list":[],"in":{"x":"b"}})");
  const auto message = [](const auto& call) { return test::message_of(call); };
  CHECK(message([&] { settings.flag("n", false); }) == "f: n is 8, expected true or false");
  CHECK(message([&] { settings.integer("n", 0, 7); }) == "f: n is 8, expected at most 7");
  CHECK(message([&] { settings.integer("n", 9, 10); }) == "f: n is 8, expected at least 9");
  CHECK(message([&] { settings.string("list"); }) == "f: list is a list, expected a string");
  CHECK(message([&] { settings.object("text"); }) == "f: text is 'a', expected an object");
  CHECK(message([&] { settings.need("text", "b"); }) == "f: text is 'a', expected 'b'");
  CHECK(message([&] { settings.object("in").integer("x", 0, 1); }) ==
        "f: in.x is 'b', expected a whole number from 0 to 1");
  CHECK(message([] { settings_of("[1]"); }) == "f: a list, expected an object");
}

TEST_CASE("a file that cannot be read is refused") {
  const test::TempFolder folder;
  CHECK_THROWS_AS(JsonSettings::read(folder / "absent"), InputError);
  test::write_file(folder / "bad", "{");
  CHECK_THROWS_AS(JsonSettings::read(folder / "bad"), InputError);
  test::write_file(folder / "good", "{}");
  CHECK(JsonSettings::read(folder / "good").empty());
}

}  // namespace
}  // namespace masque
