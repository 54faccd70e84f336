// JSON is told from text that begins like it, and its texts are read.
#include "base/json/json_text.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace masque {
namespace {

/// What JsonDetector says of a text that comes at once, and line by line.
std::string kind_of(const std::string& text) {
  JsonDetector whole, lines;
  whole.add(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.add(std::string_view(text).substr(begin, end - begin));
    begin = end;
  }
  CHECK(whole.kind() == lines.kind());
  return std::string(whole.kind());
}

TEST_CASE("JSON is recognised") {
  for (const std::string text :
       {"{\"text\":\"hello\"}\n{\"text\":\"world\"}\n", "{\"text\":\"hello\"}",
        "\n  {\"a\": 1}  \r\n", "{\"a\":1},\n{\"a\":2}\n", "{\"a\":1,\"a\":2}\n",
        "{\"a\":\"\\ud83d\"}\n", "{\"a\":\"\xE9\"}\n", "{\"ids\":[1,2],\"x\":{\"y\":[]}}\n"}) {
    CAPTURE(text);
    CHECK(kind_of(text) == "JSON lines");
  }
  for (const std::string text :
       {"[{\"text\":\"hello\"},\n{\"text\":\"world\"}]\n", "[{\"a\":1}]", "[\"a\",\"b\"]\n",
        "[\n  \"a\",\n  \"b\"\n]\n", "[\n\n{\n\"a\": 1\n},\n{}\n]\n",
        "[\n  {\n    \"text\": \"a\"\n  }\n]\n"}) {
    CAPTURE(text);
    CHECK(kind_of(text) == "a JSON array");
  }
  CHECK(kind_of("{\n  \"a\": 1,\n  \"b\": [1, 2]\n}\n{\n  \"a\": 2\n}\n") == "a JSON object");
  CHECK(kind_of("{\"data\": [\n{\"text\": \"a\"},\n{\"text\": \"b\"}\n]}\n") == "a JSON object");
  CHECK(kind_of("[\n1,\n2\n]\n") == "a JSON array");
  // What is cut off or broken after the first key, and what may come before a record.
  for (const std::string text :
       {"{}\n{\"text\":\"a\"}\n", "{}\nnull\n{ },\n{\"text\":\"a\"}\n",
        "{\"text\":\"a\"}{\"text\":\"b\"}\n", "{\"a\": 1, \"b\": 2} {\"a\"\n",
        "null\n{\"text\":\"a\"}\n", "\x1E{\"text\":\"a\"}\n\x1E{\"text\":\"b\"}\n",
        "\xC2\xA0{\"text\":\"a\"}\n", "\xEF\xBB\xBF{\"text\":\"a\"}\n", "\t{\"text\":\"a\"}\n",
        "{\"a\": NaN}\n", "ld and more\"}\n{\"text\":\"hello\"}\n{\"text\":\"world\"}\n",
        "1]}\n\x1E{\"text\":\"hello\"}"}) {
    CAPTURE(text);
    CHECK(kind_of(text) == "JSON lines");
  }
  for (const std::string text :
       {"{\"text\":\"hello", "{\"text\":", "{\"text\" : 5,\n\"b\": 6}\n"}) {
    CAPTURE(text);
    CHECK(kind_of(text) == "a JSON object");
  }
  const std::string long_line = "{\"text\":\"" + std::string(3 << 20, 'x') + "\"}\n";
  CHECK(kind_of(long_line) == "JSON lines");
}

TEST_CASE("text that begins like JSON is text") {
  for (const std::string text : {"",
                                 "\n\n",
                                 "the cat\n",
                                 "[CLS] the cat [SEP]\n",
                                 "[1] a citation\n",
                                 "[1] [2] [3]\n",
                                 "[[link]] in a wiki\n",
                                 "[[link]]\n",
                                 "{\\bf hello} world\n",
                                 "{curly text} is fine\n",
                                 "{\"text\n",
                                 "null\nthe cat\n",
                                 "null\n",
                                 "a set {1}\nthe cat\n",
                                 "int f() { }\n{}\n",
                                 "{{Infobox\n| name = x\n}}\n",
                                 "[\n",
                                 "{\n",
                                 "[\nthe cat\n]\n",
                                 "{ the set of cats }\n",
                                 "{\"a\"} is a set\n",
                                 "{\"a\": 1} is a dict in Python\n",
                                 "{'text': 'hello'}\n",
                                 "{}\n",
                                 "{}\nthe cat\n",
                                 "{ }\n[1]\n",
                                 "[1]\nthe cat\n",
                                 "[]\n",
                                 "[true]\n",
                                 "[1, 2],\n",
                                 "[1,2,3]\n[4,5]\n",
                                 "[[1],[2]]\n",
                                 "[\"a\", \"b\"] are two letters\n",
                                 "[\"Hello\", she said\n",
                                 "[\"\n",
                                 "\"a string\"\n",
                                 "5\n",
                                 "{\n\nthe\n"}) {
    CAPTURE(text);
    CHECK(kind_of(text) == "");
  }
  // What follows later changes nothing.
  CHECK(kind_of("the cat\n{\"text\":\"a\"}\n") == "");
  std::string deep(200000, '[');
  CHECK(kind_of(deep + "\n") == "");
  std::string brackets;
  for (int i = 0; i < 100; ++i) brackets += "[\n";
  CHECK(kind_of(brackets) == "");
  CHECK_NOTHROW(refuse_json("the cat", "f"));
  CHECK_THROWS_WITH_AS(refuse_json("[{\"a\":1}]", "f", "do this"),
                       "f: a JSON array, expected a text: do this", InputError);
}

TEST_CASE("lone surrogates become U+FFFD, pairs stay") {
  const auto replaced = [](std::string json) {
    const bool has = has_lone_surrogates(json);
    const std::size_t size = json.size();
    const std::uint64_t count = replace_lone_surrogates(json);
    CHECK(has == (count > 0));
    CHECK(json.size() == size);
    CHECK_FALSE(has_lone_surrogates(json));
    return std::to_string(count) + " " + json;
  };
  CHECK(replaced(R"("a\ud83d b")") == R"(1 "a\ufffd b")");
  CHECK(replaced(R"("\ud83d\ude00")") == R"(0 "\ud83d\ude00")");
  CHECK(replaced(R"("\uD83D\uDE00")") == R"(0 "\uD83D\uDE00")");
  CHECK(replaced(R"("\ude00\ud83d")") == R"(2 "\ufffd\ufffd")");
  CHECK(replaced(R"("\ud83d\ud83d\ude00")") == R"(1 "\ufffd\ud83d\ude00")");
  CHECK(replaced(R"("\ud83d\u0041")") == R"(1 "\ufffd\u0041")");
  CHECK(replaced(R"("\\ud83d")") == R"(0 "\\ud83d")");
  CHECK(replaced(R"("\\\ud83d")") == R"(1 "\\\ufffd")");
  CHECK(replaced(R"("\ud83d)") == R"(1 "\ufffd)");
  CHECK(replaced(R"("\ud83)") == R"(0 "\ud83)");
  CHECK(replaced(R"(\)") == R"(0 \)");
  CHECK(replaced("text") == "0 text");
}

TEST_CASE("the text of a JSON line") {
  std::string text;
  std::uint64_t surrogates = 0;
  const auto read = [&](std::string_view line) {
    return read_json_text(line, "text", text, surrogates).value_or(text);
  };
  CHECK(read(R"({"id":1,"text":"a \"b\"\n\u00e9"})") == "a \"b\"\n\xC3\xA9");
  CHECK(surrogates == 0);
  CHECK(read(R"({"text":"a\ud83d b"})") == "a\xEF\xBF\xBD b");
  CHECK(surrogates == 1);
  CHECK(read(R"({"t":"a"})") == "no field 'text', expected a JSON object with it");
  CHECK(read("[1]") == "no field 'text', expected a JSON object with it");
  CHECK(read(R"({"text":5})") == "field 'text' is not a string, expected a text");
  CHECK(read("the cat") == "byte 1: not valid JSON, expected a JSON object with the field 'text'");
}

}  // namespace
}  // namespace masque
