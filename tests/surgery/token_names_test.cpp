#include "surgery/rows/token_names.hpp"

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

TEST_CASE("vocab.txt: a line is a token, only the line feed is removed") {
  const TempFolder folder;
  write_file(folder / "vocab.txt", "[PAD]\r\n a \nx\xE2\x80\xA8y\n\nlast");
  const TokenNames names = TokenNames::load(folder.path());
  CHECK(names.source() == "vocab.txt");
  CHECK(names.size() == 5);
  CHECK(names.token(0) == "[PAD]");
  CHECK(names.token(1) == " a ");
  CHECK(names.token(2) == "x\xE2\x80\xA8y");
  CHECK(names.token(3).empty());
  CHECK(names.assigned(3));
  CHECK(names.id("last") == 4);
  CHECK_FALSE(names.assigned(5));
  CHECK_FALSE(names.id("none"));
}

TEST_CASE("of two equal lines the later one gives the id") {
  const TempFolder folder;
  write_file(folder / "vocab.txt", "a\nb\na\n");
  CHECK(TokenNames::load(folder.path()).id("a") == 2);
}

TEST_CASE("tokenizer.json: vocabularies as objects and as lists, added tokens on top") {
  const TempFolder folder;
  write_file(folder / "tokenizer.json",
             R"({"added_tokens":[{"id":3,"content":"<mask>"}],"model":{"vocab":{"a":0,"b":1}}})");
  write_file(folder / "vocab.txt", "not used\n");
  const TokenNames object = TokenNames::load(folder.path());
  CHECK(object.source() == "tokenizer.json");
  CHECK(object.id("b") == 1);
  CHECK(object.role("mask_token") == 3);
  CHECK_FALSE(object.assigned(2));
  write_file(folder / "tokenizer.json", R"({"model":{"vocab":[["<unk>",0.0],["x",-2.5]]}})");
  CHECK(TokenNames::load(folder.path()).id("x") == 1);
}

TEST_CASE("vocab.json with added_tokens.json") {
  const TempFolder folder;
  write_file(folder / "vocab.json", R"({"a":0,"b":1})");
  write_file(folder / "added_tokens.json", R"({"<mask>":2})");
  const TokenNames names = TokenNames::load(folder.path());
  CHECK(names.source() == "vocab.json");
  CHECK(names.role("mask_token") == 2);
  write_file(folder / "added_tokens.json", "{}");
  CHECK(TokenNames::load(folder.path()).size() == 2);
}

TEST_CASE("vocab.txt with added tokens: of tokenizer_config.json, else of added_tokens.json") {
  const TempFolder folder;
  write_file(folder / "vocab.txt", "a\nb\n");
  write_file(folder / "added_tokens.json", R"({"<old>":2})");
  CHECK(TokenNames::load(folder.path()).id("<old>") == 2);
  write_file(folder / "tokenizer_config.json",
             R"({"added_tokens_decoder":{"1":{"content":"b"},"3":{"content":"<new>"}}})");
  const TokenNames names = TokenNames::load(folder.path());
  CHECK(names.id("<new>") == 3);
  CHECK_FALSE(names.id("<old>"));
  CHECK(names.source() == "vocab.txt");
  write_file(folder / "tokenizer_config.json", R"({"added_tokens_decoder":{"x":{"content":"b"}}})");
  CHECK(contains(message_of([&] { TokenNames::load(folder.path()); }), "expected an id"));
}

TEST_CASE("roles: from the files, as text or object, else by the usual names") {
  const TempFolder folder;
  write_file(folder / "vocab.txt", "[PAD]\n[CLS]\n[MASK]\nM\nS\n");
  CHECK(TokenNames::load(folder.path()).role("mask_token") == 2);
  write_file(folder / "special_tokens_map.json",
             R"({"mask_token":{"content":"M","lstrip":true},"sep_token":"S"})");
  const TokenNames names = TokenNames::load(folder.path());
  CHECK(names.role("mask_token") == 3);
  CHECK(names.role("sep_token") == 4);
  CHECK(names.role("cls_token") == 1);
  CHECK_FALSE(names.role("bos_token"));
}

TEST_CASE("no tokenizer file is no error, a broken one is") {
  const TempFolder folder;
  CHECK(TokenNames::load(folder.path()).empty());
  const auto message = [&](const char* text) {
    write_file(folder / "tokenizer.json", text);
    return message_of([&] { TokenNames::load(folder.path()); });
  };
  CHECK(contains(message("{"), "tokenizer.json: byte "));
  CHECK(contains(message("{}"), "no model.vocab"));
  CHECK(contains(message(R"({"model":{"vocab":{"a":-1}}})"), "byte 23: expected an id"));
  CHECK(contains(message(R"({"model":{"vocab":{"a":99999999999}}})"), "id 99999999999"));
  CHECK(contains(message(R"({"model":{"vocab":{}},"added_tokens":[{"id":1}]})"), "content and id"));
}

TEST_CASE("unused tokens") {
  for (const char* token : {"[unused0]", "[unused99]", "<unused7>", "[unused]"}) {
    CAPTURE(token);
    CHECK(is_unused_token(token));
  }
  for (const char* token : {"unused", "[unusedx]", "[UNK]", "[unused1", "<unused1]", ""}) {
    CAPTURE(token);
    CHECK_FALSE(is_unused_token(token));
  }
}

}  // namespace
}  // namespace masque::surgery
