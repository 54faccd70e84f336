// Edits that change only the bytes that must change, and quoting.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "support/message.hpp"
#include "support/naive_json.hpp"

namespace masque {
namespace {

using namespace std::string_literals;

TEST_CASE("an existing value is replaced and nothing else") {
  CHECK(set_json_member("{\"a\":1,\"b\":2}", {"a"}, "17") == "{\"a\":17,\"b\":2}");
  CHECK(set_json_member("{ \"a\" : [1, 2] ,\n\"b\":2}\n", {"a"}, "null") ==
        "{ \"a\" : null ,\n\"b\":2}\n");
  CHECK(set_json_member("{\"a\":\"x\"}", {"a"}, "{\"y\":0}") == "{\"a\":{\"y\":0}}");
  CHECK(set_json_member("{\"\\u0061\":1}", {"a"}, "2") == "{\"\\u0061\":2}");
}

TEST_CASE("the spelling of all other numbers is kept") {
  const std::string text =
      "{\n  \"eps\": 1e-12,\n  \"n\": 1.50,\n  \"big\": 12345678901234567890123\n}\n";
  CHECK(set_json_member(text, {"n"}, "2") ==
        "{\n  \"eps\": 1e-12,\n  \"n\": 2,\n  \"big\": 12345678901234567890123\n}\n");
}

TEST_CASE("a missing member is added after the last one, spaced as that one") {
  CHECK(set_json_member("{\"a\":1}", {"b"}, "2") == "{\"a\":1,\"b\":2}");
  CHECK(set_json_member("{\"a\": 1, \"b\": 2}", {"c"}, "3") == "{\"a\": 1, \"b\": 2, \"c\": 3}");
  CHECK(set_json_member("{\n  \"a\": 1\n}\n", {"b"}, "2") == "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
  CHECK(set_json_member("{\n\t\"a\" : 1,\n\t\"b\" :\t2\n}", {"c"}, "3") ==
        "{\n\t\"a\" : 1,\n\t\"b\" :\t2,\n\t\"c\" :\t3\n}");
  CHECK(set_json_member("{ \"a\":{\"x\":\"}\"} }", {"b"}, "[]") ==
        "{ \"a\":{\"x\":\"}\"}, \"b\":[] }");
  CHECK(set_json_member("{\"a,:b\":\":,\",\"c\":\",:\"}", {"d"}, "0") ==
        "{\"a,:b\":\":,\",\"c\":\",:\",\"d\":0}");
}

TEST_CASE("a member is added to an empty object") {
  CHECK(set_json_member("{}", {"a"}, "1") == "{\"a\": 1}");
  CHECK(set_json_member("{\"m\":{}}", {"m", "a"}, "1") == "{\"m\":{\"a\": 1}}");
  const std::string spaced = set_json_member("{\n}\n", {"a"}, "1");
  CHECK(test::naive_json(spaced, 4)->find("a")->text == "1");
}

TEST_CASE("a nested member is replaced or added") {
  const std::string text = "{\"m\": {\"x\": 1}, \"n\": 2}";
  CHECK(set_json_member(text, {"m", "x"}, "9") == "{\"m\": {\"x\": 9}, \"n\": 2}");
  CHECK(set_json_member(text, {"m", "y"}, "9") == "{\"m\": {\"x\": 1,\"y\": 9}, \"n\": 2}");
}

TEST_CASE("a new key is quoted") {
  const std::string text = set_json_member("{\"a\":1}", {"x\"\\\n"}, "2");
  CHECK(text == "{\"a\":1,\"x\\\"\\\\\\n\":2}");
  CHECK(test::naive_json(text, 4)->find("x\"\\\n")->text == "2");
}

TEST_CASE("a key on the way that is missing or no object is refused") {
  const auto message = [](const std::string& text, const std::vector<std::string>& path) {
    return test::message_of([&] { set_json_member(text, path, "1"); });
  };
  CHECK(test::contains(message("{}", {"a", "b"}), "no member \"a\" found"));
  CHECK(test::contains(message("{\"a\":1}", {"a", "b"}), "no member \"b\" found"));
  CHECK(test::contains(message("[{}]", {"a"}), "no member \"a\" found"));
  CHECK(test::contains(message("{\"a\":}", {"a"}), "not valid JSON"));
  CHECK(test::contains(message("{}", {"\x1b", "b"}), "\\x1b"));
}

TEST_CASE("quoting escapes quotes, backslashes and controls only") {
  CHECK(quote_json("") == "\"\"");
  CHECK(quote_json("a/b é 🙂 \x7F") == "\"a/b é 🙂 \\u007f\"");
  CHECK(quote_json("\"\\") == "\"\\\"\\\\\"");
  CHECK(quote_json("\b\f\n\r\t") == "\"\\b\\f\\n\\r\\t\"");
  CHECK(quote_json("\0\x01\x1f"s) == "\"\\u0000\\u0001\\u001f\"");
}

TEST_CASE("every quoted string reads back") {
  for (int c = 0; c < 128; ++c) {
    const std::string text = {'x', static_cast<char>(c), 'y'};
    CAPTURE(c);
    CHECK(test::naive_json(quote_json(text), 1)->text == text);
  }
}

TEST_CASE("a member is erased with its comma, and every other byte stays") {
  CHECK(erase_json_member("{\"a\":1,\"b\":2}", {"a"}) == "{\"b\":2}");
  CHECK(erase_json_member("{\"a\":1,\"b\":2}", {"b"}) == "{\"a\":1}");
  CHECK(erase_json_member("{ \"a\": 1 }", {"a"}) == "{}");
  CHECK(erase_json_member("{\n  \"a\": 1,\n  \"b\": [2],\n  \"c\": 3\n}\n", {"b"}) ==
        "{\n  \"a\": 1,\n  \"c\": 3\n}\n");
  CHECK(erase_json_member("{\"x\": {\"a\": 1, \"b\": 2}}", {"x", "b"}) == "{\"x\": {\"a\": 1}}");
  CHECK(erase_json_member("{\"x\": {}}", {"x", "b"}) == "{\"x\": {}}");
  CHECK(erase_json_member("{\"x\": {}}", {"y", "b"}) == "{\"x\": {}}");
  CHECK_THROWS_AS(erase_json_member("{", {"a"}), InputError);
}

}  // namespace
}  // namespace masque
