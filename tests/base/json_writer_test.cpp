#include "base/json/json_writer.hpp"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json/json.hpp"

using namespace masque;

TEST_CASE("what the writer writes has its commas and is read back") {
  std::string out = "line: ";
  JsonWriter json(out);
  json.begin_object().member("text", "a\"b\\c\n\x01\xC3\xA4").member("whole", -3);
  json.member("most", std::numeric_limits<std::uint64_t>::max()).member("yes", true);
  json.member("number", 0.1).member("none", std::numeric_limits<double>::quiet_NaN());
  json.key("list").array(std::vector<int>{1, 2}).key("empty").begin_array().end_array();
  json.key("inside").begin_object().end_object().raw_member("spelled", "1.50").raw("");
  json.raw(R"("x":1,"y":2)").key("nothing").null().end_object();
  CHECK(out ==
        "line: {\"text\":\"a\\\"b\\\\c\\n\\u0001\xC3\xA4\",\"whole\":-3,"
        "\"most\":18446744073709551615,\"yes\":true,\"number\":0.1,\"none\":null,\"list\":[1,2],"
        "\"empty\":[],\"inside\":{},\"spelled\":1.50,\"x\":1,\"y\":2,\"nothing\":null}");
  CHECK(std::holds_alternative<JsonValue>(read_json(out.substr(6))));
}

TEST_CASE("layouts differ in blanks alone") {
  const auto write = [](JsonWriter& json) {
    json.begin_object().member("a", 1).key("b").array(std::vector<std::int32_t>{-2, 3});
    json.key("c")
        .begin_object()
        .member("d", std::optional<int>())
        .raw_key(R"("\u0065")")
        .value(true);
    json.end_object().key("f").begin_array().begin_object().member("g", nullptr).member("h", 0.5);
    json.end_object().value("i").end_array().end_object();
  };
  CHECK(json_text(write) ==
        R"({"a":1,"b":[-2,3],"c":{"d":null,"\u0065":true},"f":[{"g":null,"h":0.5},"i"]})");
  CHECK(json_text(write, JsonLayout::kSpaced) ==
        R"({"a": 1, "b": [-2, 3], "c": {"d": null, "\u0065": true}, )"
        R"("f": [{"g": null, "h": 0.5}, "i"]})");
  CHECK(json_text(write, JsonLayout::kLines) ==
        "{\n  \"a\": 1,\n  \"b\": [-2, 3],\n  \"c\": {\n    \"d\": null,\n"
        "    \"\\u0065\": true\n  },\n  \"f\": [{\"g\": null, \"h\": 0.5}, \"i\"]\n}");
}

TEST_CASE("long lists of numbers are written in pieces") {
  std::vector<std::int32_t> list(1500);
  std::string expected = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = static_cast<std::int32_t>(i) - 700;
    expected += (i > 0 ? "," : "") + std::to_string(list[i]);
  }
  CHECK(json_array(list) == expected + "]");
  CHECK(json_array(std::vector<std::int32_t>()) == "[]");
}

TEST_CASE("a string of JSON is quoted as before and after other text") {
  for (const char* text : {"", "plain", "\"", "tab\tend", "\\", "\x1F"}) {
    std::string out;
    append_json_string(text, out);
    CHECK(out == quote_json(text));
    CHECK(std::get<JsonValue>(read_json(out)).text == text);
  }
}

TEST_CASE("bidirectional controls are escaped, their neighbours are not") {
  const auto written = [](std::string_view text) {
    std::string out;
    append_json_string(text, out);
    return out;
  };
  CHECK(written("a\u202Eb\u061C\u200F\u2066\u2069") == "\"a\\u202eb\\u061c\\u200f\\u2066\\u2069\"");
  const std::string kept = "\u2010\u2027\u202F\u2065\u206A\u061B\u0600\xE2\x80";
  CHECK(written(kept) == "\"" + kept + "\"");
}
