// The few fields of config.json that weights need, and what they must not be.
#include "store/config.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

using Names = std::vector<std::string>;

ModelConfig config_of(const TempFolder& folder, const std::string& text) {
  write_file(folder / "config.json", text);
  return ModelConfig::read(folder / "config.json");
}

TEST_CASE("the fields are read and the text is kept to the byte") {
  const TempFolder folder;
  const std::string text =
      " {\"model_type\":\"b\\u00e9rt\",\"architectures\":[\"A\",\"B\"] ,\"tie_word_embeddings\""
      ":false,\n\t\"vocab_size\":18446744073709551615,\"range\":2e-2,\"name\":\"n\",\"odd\":[1,{}]}"
      "\n";
  const ModelConfig config = config_of(folder, text);
  CHECK(config.path() == folder / "config.json");
  CHECK(config.text() == text);
  CHECK(config.model_type() == "bért");
  CHECK(config.architectures() == Names{"A", "B"});
  CHECK(config.tie_word_embeddings() == false);
  CHECK(config.size("vocab_size") == 18446744073709551615U);
  CHECK(config.number("range") == 0.02);
  CHECK(config.number("vocab_size") == 18446744073709551616.0);
  CHECK(config.string("name") == "n");
}

TEST_CASE("absent and null are the same: nothing") {
  const TempFolder folder;
  for (const char* text :
       {"{}", R"({"model_type": null, "architectures": null, "tie_word_embeddings": null,
                  "vocab_size": null, "range": null, "name": null})"}) {
    CAPTURE(text);
    const ModelConfig config = config_of(folder, text);
    CHECK(config.model_type().empty());
    CHECK(config.architectures().empty());
    CHECK_FALSE(config.tie_word_embeddings().has_value());
    CHECK_FALSE(config.size("vocab_size").has_value());
    CHECK_FALSE(config.number("range").has_value());
    CHECK_FALSE(config.string("name").has_value());
  }
}

TEST_CASE("a size is a whole number and nothing else") {
  const TempFolder folder;
  for (const char* value :
       {"-1", "-0", "1.0", "1e3", "1E0", "\"1\"", "true", "[1]", "{}", "18446744073709551616"}) {
    const ModelConfig config = config_of(folder, std::string("{\"n\": ") + value + "}");
    CAPTURE(value);
    CHECK(message_of([&] { config.size("n"); }) ==
          folder / "config.json: n (byte 6): expected a whole number");
  }
  CHECK(config_of(folder, "{\"n\": 0}").size("n") == 0U);
}

TEST_CASE("a number may be spelled in any way that JSON has") {
  const TempFolder folder;
  for (const auto& pair :
       {std::pair{"0", 0.0}, {"-1", -1.0}, {"2.5e-1", 0.25}, {"1E2", 100.0}, {"-0.0", 0.0}}) {
    const auto& value = pair.first;
    const auto& number = pair.second;
    const ModelConfig config = config_of(folder, std::string("{\"x\":") + value + "}");
    CAPTURE(value);
    CHECK(config.number("x") == number);
  }
  for (const char* value : {"\"1\"", "false", "[]"}) {
    const ModelConfig config = config_of(folder, std::string("{\"x\":") + value + "}");
    CAPTURE(value);
    CHECK(message_of([&] { config.number("x"); }) ==
          folder / "config.json: x (byte 5): expected a number");
  }
}

TEST_CASE("tie_word_embeddings is true or false and nothing else") {
  const TempFolder folder;
  CHECK(config_of(folder, R"({"tie_word_embeddings": true})").tie_word_embeddings() == true);
  for (const char* value : {"1", "0", "\"false\"", "[]"}) {
    const ModelConfig config =
        config_of(folder, std::string("{\"tie_word_embeddings\": ") + value + "}");
    CAPTURE(value);
    CHECK(message_of([&] { config.tie_word_embeddings(); }) ==
          folder / "config.json: tie_word_embeddings (byte 24): expected true or false");
  }
}

TEST_CASE("fields of nested objects are not those of the model") {
  const TempFolder folder;
  const ModelConfig config = config_of(
      folder, R"({"text_config": {"model_type": "bert", "vocab_size": 3, "x": 1, "s": "t"}})");
  CHECK(config.model_type().empty());
  CHECK_FALSE(config.size("vocab_size").has_value());
  CHECK_FALSE(config.number("x").has_value());
  CHECK_FALSE(config.string("s").has_value());
}

TEST_CASE("what is no JSON object is refused with the byte") {
  const TempFolder folder;
  for (const char* text : {"[]", "1", "null", "\"{}\"", "true"}) {
    CAPTURE(text);
    CHECK(message_of([&] { config_of(folder, text); }) ==
          folder / "config.json: is not a JSON object, expected one");
  }
  for (const auto& pair : {std::pair{"", "byte 0: "},
                           {"{\"a\": 1,}", "byte 8: "},
                           {"{\"a\": 1} x", "byte 9: "},
                           {"{\"a\": 1, \"a\": 2}", "byte 9: "},
                           {"{\"a\": NaN}", "byte 6: "}}) {
    const auto& text = pair.first;
    const auto& byte = pair.second;
    const std::string message = message_of([&] { config_of(folder, text); });
    CAPTURE(text);
    CHECK(message.starts_with(folder / "config.json: " + byte));
  }
}

TEST_CASE("a config is at most 16 MiB long") {
  const TempFolder folder;
  const std::string space((16 << 20) - 2, ' ');
  CHECK(config_of(folder, "{}" + space).model_type().empty());
  CHECK(message_of([&] { config_of(folder, "{} " + space); }) ==
        folder / "config.json: has 16777217 bytes, expected at most 16777216");
}

TEST_CASE("a folder has a config or has none, one that cannot be read is an error") {
  const TempFolder folder;
  CHECK_FALSE(ModelConfig::find(folder.path()).has_value());
  write_file(folder / "config.json", R"({"model_type": "gpt2"})");
  const auto found = ModelConfig::find(folder.path());
  REQUIRE(found.has_value());
  CHECK(found->model_type() == "gpt2");
  write_file(folder / "sub/config.json/x", "");
  CHECK(contains(message_of([&] { ModelConfig::find(folder / "sub"); }),
                 "is a folder, expected a regular file"));
  write_file(folder / "bad/config.json", "{");
  CHECK(contains(message_of([&] { ModelConfig::find(folder / "bad"); }), "config.json: byte 1: "));
}

TEST_CASE("flags, lists, objects and spellings") {
  const TempFolder folder;
  const ModelConfig config = config_of(
      folder, R"({"yes":true,"list":["a","b"],"mixed":["a",1],"rope":{"factor":8.0},"none":null})");
  CHECK(config.flag("yes") == true);
  CHECK_FALSE(config.flag("none").has_value());
  CHECK(config.strings("list") == Names{"a", "b"});
  CHECK_FALSE(config.strings("absent").has_value());
  CHECK(config.has("list"));
  CHECK_FALSE(config.has("none"));
  CHECK(config.spelling("rope") == "{\"factor\":8.0}");
  CHECK(config.spelling("absent").empty());
  const auto rope = config.object("rope");
  REQUIRE(rope.has_value());
  CHECK(rope->number("factor") == 8);
  CHECK(rope->spelling("factor") == "8.0");
  CHECK(contains(message_of([&] { config.flag("list"); }), "list (byte"));
  CHECK(contains(message_of([&] { config.strings("mixed"); }), "expected a list of strings"));
  CHECK(contains(message_of([&] { config.object("yes"); }), "expected an object"));
}

}  // namespace
}  // namespace masque::store
