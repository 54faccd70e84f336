// Errors name fields, and who shows them says how a field is spelled.
#include "base/error.hpp"

#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/thread/parallel.hpp"

namespace masque::test {
namespace {

std::string as_option(std::string_view name) { return fmt::format("<{}>", name); }

const std::string kMessage =
    fmt::format("{} 2 is not read by {} tta", field("mask_token"), field("objective"));

TEST_CASE("an error names its fields, and spells them as requested") {
  const UsageError error(kMessage);
  CHECK(std::string(error.what()) == "mask_token 2 is not read by objective tta");
  CHECK(spell_fields(error.message(), as_option) ==
        "<mask_token> 2 is not read by <objective> tta");
  CHECK(error.message() == kMessage);
  CHECK(fields_of(error.message()) == std::vector<std::string>{"mask_token", "objective"});
  CHECK(spell_fields(kMessage) == error.what());
}

TEST_CASE("a message without fields is itself") {
  for (const char* text : {"", "found 3, expected 4", "a\nb\xC3\xA9"}) {
    const InputError error{std::string(text)};
    CHECK(std::string(error.what()) == text);
    CHECK(spell_fields(error.message(), as_option) == text);
    CHECK(fields_of(text).empty());
  }
}

TEST_CASE("what wraps a message keeps its fields") {
  const auto problem = usage_error_message([] { throw UsageError(kMessage); });
  REQUIRE(problem);
  const InputError error("a\x1e", *problem);
  CHECK(std::string(error.what()) == "a\\x1e: mask_token 2 is not read by objective tta");
  CHECK(spell_fields(error.message(), as_option) ==
        "a\\x1e: <mask_token> 2 is not read by <objective> tta");
  const auto again = input_error_message([&] { throw InputError(error); });
  CHECK(fields_of(again.value_or("")) == fields_of(kMessage));
}

TEST_CASE("a caught error keeps its fields") {
  const auto thrown = caught([] { throw UsageError(kMessage); });
  const auto problem = usage_error_message([&] { std::rethrow_exception(thrown); });
  CHECK(problem == kMessage);
  CHECK(std::is_nothrow_copy_constructible_v<UsageError>);
  CHECK(std::is_nothrow_copy_constructible_v<InputError>);
}

TEST_CASE("escaped text has no fields, and a mark without its other one is text") {
  CHECK(fields_of(escape(field("rate"))).empty());
  const std::string begin = field("").substr(0, 1);
  const std::string end = field("").substr(1);
  for (const std::string& text : {begin, end, end + begin, "a" + end + "b" + begin + "c"}) {
    CHECK(fields_of(text).empty());
    CHECK(spell_fields(text) == text);
  }
  CHECK(fields_of(begin + "x " + field("rate") + end) == std::vector<std::string>{"rate"});
  CHECK(spell_fields(begin + "x " + field("rate") + end) == begin + "x rate" + end);
}

}  // namespace
}  // namespace masque::test
