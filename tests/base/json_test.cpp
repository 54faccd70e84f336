// The strict reader: what it accepts, what it refuses and where, and that every position is right.
#include "base/json/json.hpp"

#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/message.hpp"
#include "support/naive_json.hpp"

namespace masque {
namespace {

using namespace std::string_view_literals;
using test::naive_json;
using test::NaiveJson;

constexpr int kDepth = 64;

JsonValue good(std::string_view text) {
  auto result = read_json(text);
  if (const auto* error = std::get_if<JsonError>(&result)) {
    FAIL(fmt::format("{} at byte {} of {}", error->message, error->offset, text));
  }
  return std::get<JsonValue>(std::move(result));
}

JsonError bad(std::string_view text) {
  auto result = read_json(text);
  if (std::holds_alternative<JsonValue>(result)) FAIL("accepted: ", std::string(text));
  return std::get<JsonError>(result);
}

/// Where the two readings of a text differ; empty if they agree in every value and position.
std::string difference(const JsonValue& a, const NaiveJson& b) {
  constexpr std::string_view kKinds = "nt0\"[{";
  const std::string at = fmt::format(" at bytes {} to {}", b.begin, b.end);
  if (kKinds[static_cast<std::size_t>(a.kind)] != b.kind) return "kind" + at;
  if (a.begin != b.begin || a.end != b.end) {
    return fmt::format("position {} to {}{}", a.begin, a.end, at);
  }
  if (a.text != b.text) return "text" + at;
  if (a.members.size() != b.members.size() || a.items.size() != b.items.size()) return "size" + at;
  for (std::size_t i = 0; i < a.members.size(); ++i) {
    if (a.members[i].name != b.members[i].name) return "key" + at;
    if (auto found = difference(a.members[i].value, b.members[i].value); !found.empty()) {
      return found;
    }
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (auto found = difference(a.items[i], b.items[i]); !found.empty()) return found;
  }
  return {};
}

/// How the reader differs from the naive one on a text; empty if both accept or refuse it alike.
std::string disagreement(std::string_view text) {
  const auto ours = read_json(text);
  const auto naive = naive_json(text, kDepth);
  const auto* value = std::get_if<JsonValue>(&ours);
  if ((value != nullptr) != naive.has_value()) {
    return fmt::format("{} by us only: {}", value ? "accepted" : "refused", text);
  }
  if (value == nullptr) {
    const JsonError& error = std::get<JsonError>(ours);
    return error.offset <= text.size() ? "" : fmt::format("offset beyond the text: {}", text);
  }
  return difference(*value, *naive);
}

TEST_CASE("every value knows its first byte and the one after its last") {
  const std::string text = " {\"a\" : [1, -2.5e+3,\ttrue ,null],\n\"b\":{\"c\": \"x\\ny\"} } ";
  const JsonValue root = good(text);
  const auto spelling = [&](const JsonValue& v) { return text.substr(v.begin, v.end - v.begin); };
  CHECK(spelling(root) == text.substr(1, text.size() - 2));
  const JsonValue& a = *root.find("a");
  CHECK(spelling(a) == "[1, -2.5e+3,\ttrue ,null]");
  REQUIRE(a.items.size() == 4);
  CHECK(spelling(a.items[0]) == "1");
  CHECK(spelling(a.items[1]) == "-2.5e+3");
  CHECK(spelling(a.items[2]) == "true");
  CHECK(spelling(a.items[3]) == "null");
  const JsonValue& b = *root.find("b");
  CHECK(spelling(b) == "{\"c\": \"x\\ny\"}");
  CHECK(spelling(*b.find("c")) == "\"x\\ny\"");
  CHECK(b.find("c")->text == "x\ny");
  CHECK(text.substr(root.members[1].begin, 3) == "\"b\"");
  CHECK(text.substr(b.members[0].begin, 3) == "\"c\"");
  CHECK(root.find("c") == nullptr);
}

TEST_CASE("good documents read the same as by the naive parser") {
  for (const auto text : {"null"sv,
                          " true\n"sv,
                          "0"sv,
                          "-0"sv,
                          "-0.0e-0"sv,
                          "1E400000000000000000000"sv,
                          "1e-999"sv,
                          "[]"sv,
                          "[[],{}]"sv,
                          "{}"sv,
                          "{ }"sv,
                          "[1,2]"sv,
                          "[1 ,2 ]"sv,
                          "[ 1\n,\n2\n]"sv,
                          "{\"a\":1,\"b\":2}"sv,
                          "{\"\":\"\"}"sv,
                          "\"\x7F\""sv,
                          "\"\\u0000\""sv,
                          "\"\\ud83d\\ude42 \\u00e9 \\/ \\b\\f\\n\\r\\t\\\"\\\\\""sv,
                          "\"\xF0\x9F\x99\x82\""sv,
                          "{\"\\u0061\":1,\"b\":{\"\\u0061\":2}}"sv,
                          "[1.5,12345678901234567890123,-7]"sv,
                          "[{\"a\":[{\"b\":[]}]},3]"sv,
                          "\t\r\n 12 \t\r\n"sv}) {
    CHECK(disagreement(text) == "");
  }
}

TEST_CASE("what is not RFC 8259 is refused") {
  for (const auto text : {""sv,
                          " "sv,
                          "{"sv,
                          "}"sv,
                          "[1,]"sv,
                          "[,1]"sv,
                          "{\"a\":1,}"sv,
                          "{,}"sv,
                          "{\"a\"}"sv,
                          "{\"a\":}"sv,
                          "{a:1}"sv,
                          "{'a':1}"sv,
                          "[1 2]"sv,
                          "{\"a\":1 \"b\":2}"sv,
                          "nul"sv,
                          "nulll"sv,
                          "True"sv,
                          "NaN"sv,
                          "Infinity"sv,
                          "-Infinity"sv,
                          "+1"sv,
                          "01"sv,
                          "-01"sv,
                          "1."sv,
                          ".5"sv,
                          "1.e3"sv,
                          "1e"sv,
                          "1e+"sv,
                          "0x10"sv,
                          "--1"sv,
                          "1_000"sv,
                          "// x\n1"sv,
                          "/* x */ 1"sv,
                          "1 // x"sv,
                          "[1]]"sv,
                          "{}{}"sv,
                          "1 2"sv,
                          "\"a"sv,
                          "\"\\x41\""sv,
                          "\"\\u12\""sv,
                          "\"\\u12G4\""sv,
                          "\"a\nb\""sv,
                          "\"\t\""sv,
                          "\"\0\""sv,
                          "{}\0"sv,
                          "{}\0garbage"sv,
                          "[1\0]"sv,
                          "\0{}"sv,
                          "\v1"sv,
                          "\f1"sv,
                          "\xC2\xA0"
                          "1"sv,
                          "1e999"sv,
                          "-1e999"sv}) {
    CAPTURE(text);
    bad(text);
    CHECK(disagreement(text) == "");
  }
}

TEST_CASE("an error names the byte where it was noticed") {
  CHECK(bad("{\"a\": nul}").offset == 9);
  CHECK(bad("{\"a\":1} x").offset == 8);
  CHECK(bad("{}{}").offset == 2);
  CHECK(bad("{}\0"sv).offset == 2);
  CHECK(bad("[1,]").offset == 3);
  CHECK(bad("").message == "not valid JSON");
}

TEST_CASE("a byte-order mark is refused") {
  CHECK(bad("\xEF\xBB\xBF{}").message == "starts with a byte-order mark");
  CHECK_FALSE(bad("\xEF\xBB\xBF{}").bad_utf8);
  CHECK(bad("{}\xEF\xBB\xBF").message == "not valid JSON");
}

TEST_CASE("invalid UTF-8 in a string is refused as such") {
  for (const auto text :
       {"\"\x80\""sv, "\"\xC3\""sv, "\"\xC0\xAF\""sv, "\"\xE0\x80\xAF\""sv, "\"\xED\xA0\x80\""sv,
        "\"\xF4\x90\x80\x80\""sv, "\"\xF8\x88\x80\x80\x80\""sv, "{\"\xFF\":1}"sv}) {
    const JsonError error = bad(text);
    CHECK(error.bad_utf8);
    CHECK(error.message == "not valid UTF-8");
    CHECK(disagreement(text) == "");
  }
}

TEST_CASE("a lone surrogate is refused") {
  for (const auto text : {"\"\\ud83d\""sv, "\"\\ude42\""sv, "\"\\ud83dx\""sv,
                          "\"\\ud83d\\u0041\""sv, "\"\\ud83d\\ud83d\""sv, "\"\\ude42\\ud83d\""sv}) {
    CAPTURE(text);
    bad(text);
    CHECK(disagreement(text) == "");
  }
}

TEST_CASE("a duplicate key is refused at the second one") {
  const JsonError error = bad("{\"a\":1, \"b\":2, \"a\":3}");
  CHECK(error.duplicate_key);
  CHECK(error.message == "the key \"a\" occurs twice");
  CHECK(error.offset == 15);
  CHECK(bad("{\"x\":{\"k\":1,\"k\":1}}").offset == 12);
  CHECK(bad("[{},{\"k\":[],\"k\":{}}]").duplicate_key);
}

TEST_CASE("a duplicate key is refused in any spelling") {
  CHECK(bad("{\"a\":1,\"\\u0061\":2}").duplicate_key);
  CHECK(bad("{\"\\/\":1,\"/\":2}").duplicate_key);
  CHECK(bad("{\"\\ud83d\\ude42\":1,\"\xF0\x9F\x99\x82\":2}").duplicate_key);
  CHECK(bad("{\"\":1,\"\":2}").duplicate_key);
  // It is named as it is spelled in the text, safe to print.
  CHECK(test::contains(bad("{\"\\u001b\":1,\"\\u001B\":2}").message, "u001B\" occurs twice"));
  CHECK(test::contains(bad("{\"\u202E\":1,\"\u202E\":2}").message, "\\u{202e}"));
  CHECK(good("{\"a\":1,\"A\":2,\"\\u0062\":3}").members.size() == 3);
}

TEST_CASE("a duplicate key is found among any number of keys") {
  for (int count = 2; count <= 40; ++count) {
    for (int second = 1; second < count; ++second) {
      std::string text = "{";
      std::size_t place = 0;
      for (int i = 0; i < count; ++i) {
        if (i == second) place = text.size();
        // Key `second` repeats the first one.
        text += fmt::format("\"k{}\":{},", i == second ? 0 : i, i);
      }
      text.back() = '}';
      const JsonError error = bad(text);
      CAPTURE(text);
      REQUIRE(error.duplicate_key);
      REQUIRE(error.offset == place);
    }
  }
}

TEST_CASE("equal keys of different objects are no duplicates") {
  CHECK(good("[{\"a\":1},{\"a\":{\"a\":2}}]").items.size() == 2);
}

TEST_CASE("nesting is refused beyond the limit and not before") {
  const std::string brackets(kDepth, '[');
  const std::string closing(kDepth, ']');
  CHECK(good(brackets + closing).is(JsonKind::kArray));
  const JsonError error = bad("[" + brackets + closing + "]");
  CHECK(error.message == "nested deeper than 64 levels");
  CHECK(error.offset == kDepth);
  CHECK(disagreement("[" + brackets + closing + "]") == "");
  bad(std::string(1'000'000, '['));  // without using the stack
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  bad(objects);
}

TEST_CASE("a handler that stops ends the scan without an error") {
  struct Stopper final : JsonHandler {
    int seen = 0;
    bool scalar(JsonKind, std::string_view, std::size_t) override { return ++seen < 2; }
    bool string(std::string&, std::size_t, std::size_t) override { return true; }
    bool key(std::string&, std::size_t) override { return true; }
    bool begin(JsonKind, std::size_t) override { return true; }
    bool end(JsonKind, std::size_t) override { return true; }
  } stopper;
  CHECK_FALSE(scan_json("[1,2,3,!", 8, stopper).has_value());
  CHECK(stopper.seen == 2);
}

TEST_CASE("the leaves of a document come with their places") {
  const std::string text = R"({"a":[1,{"b":"x\ny"},[]],"c":{},"d":[[true]],"e":null})";
  std::vector<std::string> seen;
  const auto note = [&](const std::vector<JsonStep>& path, JsonKind kind, const std::string& leaf,
                        std::size_t begin) {
    std::string place;
    for (const JsonStep& step : path) {
      place += step.in_object ? fmt::format(".{}({})", step.key, step.index)
                              : fmt::format("[{}]", step.index);
    }
    seen.push_back(fmt::format("{} {} '{}' {}", place, static_cast<int>(kind), leaf, begin));
    return leaf != "true";
  };
  CHECK_FALSE(scan_json_leaves(text, note).has_value());
  CHECK(seen == std::vector<std::string>{".a(0)[0] 2 '1' 6", ".a(0)[1].b(0) 3 'x\ny' 13",
                                         ".a(0)[2] 4 '' 21", ".c(1) 5 '' 29",
                                         ".d(2)[0][0] 1 'true' 38"});
  seen.clear();
  CHECK_FALSE(scan_json_leaves("7", note).has_value());
  CHECK(seen == std::vector<std::string>{" 2 '7' 0"});
  CHECK(scan_json_leaves("[1,", note).has_value());
}

TEST_CASE("whole numbers are taken only in their one spelling and range") {
  const auto integer = [](std::string_view text) { return good(text).integer(); };
  CHECK(integer("0") == 0);
  CHECK(integer("18446744073709551615") == 18446744073709551615U);
  for (const auto text : {"18446744073709551616"sv, "-1"sv, "-0"sv, "1.0"sv, "1e3"sv, "0.5"sv,
                          "\"1\""sv, "null"sv, "99999999999999999999999"sv}) {
    CAPTURE(text);
    CHECK(integer(text) == std::nullopt);
  }
  CHECK(parse_unsigned("7") == 7);
  for (const auto text : {""sv, "00"sv, "01"sv, "+1"sv, " 1"sv, "1 "sv, "1a"sv}) {
    CAPTURE(text);
    CHECK(parse_unsigned(text) == std::nullopt);
  }
}

TEST_CASE("numbers keep their spelling and have their value") {
  CHECK(good("1e-12").number() == 1e-12);
  CHECK(good("1e-12").text == "1e-12");
  CHECK(good("-0.50").number() == -0.5);
  CHECK(good("-0.50").text == "-0.50");
  CHECK(good("12345678901234567890123").number() == 12345678901234567890123.0);
  CHECK(good("\"1\"").number() == std::nullopt);
  CHECK(good("true").number() == std::nullopt);
}

TEST_CASE("any single byte changed gives the same verdict as the naive parser") {
  for (const std::string original :
       {R"({"a":[1,-2.5e3,true,null,"x\u00e9\n"],"b" : { "c":false , "\ud83d\ude42":0 }})",
        "[ 10 , \"\xF0\x9F\x99\x82\xC3\xA9\xE2\x82\xAC\", {} ]\n"}) {
    REQUIRE(disagreement(original) == "");
    for (std::size_t i = 0; i < original.size(); ++i) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = original;
        changed[i] = static_cast<char>(byte);
        const std::string found = disagreement(changed);
        if (!found.empty()) FAIL_CHECK("byte ", i, " set to ", byte, ": ", found);
      }
      const std::string cut = original.substr(0, i);
      CHECK(disagreement(cut) == "");
      CHECK(disagreement(cut + original.substr(i + 1)) == "");
    }
  }
}

TEST_CASE("random documents have the positions of the naive parser") {
  std::mt19937 random(5);
  const auto space = [&] { return std::string(random() % 3, " \t\n\r"[random() % 4]); };
  const auto scalar = [&]() -> std::string {
    switch (random() % 6) {
      case 0: return "null";
      case 1: return random() % 2 ? "true" : "false";
      case 2: return std::to_string(random());
      case 3: return fmt::format("-{}.{}e{}", random() % 10, random() % 100, random() % 20);
      case 4: return fmt::format("\"{}\\u00e9,:[]{{}}\"", std::string(random() % 4, 'x'));
      default: return "0";
    }
  };
  const auto make = [&](auto& self, int depth) -> std::string {
    const bool object = random() % 2;
    if (depth == 0 || random() % 3 == 0) return space() + scalar() + space();
    std::string out = space() + (object ? "{" : "[") + space();
    for (std::size_t size = random() % 12, n = 0; n < size; ++n) {
      if (n > 0) out += ",";
      if (object) out += fmt::format("{}\"k\\n{}\"{}:", space(), n, space());
      out += self(self, depth - 1);
    }
    out += object ? "}" : "]";
    return out + space();
  };
  for (int i = 0; i < 500; ++i) {
    const std::string text = make(make, 4);
    REQUIRE(naive_json(text, kDepth).has_value());
    REQUIRE(disagreement(text) == "");
  }
}

TEST_CASE("a bad file is named with the byte of the error") {
  const std::string message =
      test::message_of([] { parse_json_file("{\"a\":1,,}", "dir/config.json"); });
  CHECK(message == "dir/config.json: byte 7: not valid JSON");
}

}  // namespace
}  // namespace masque
