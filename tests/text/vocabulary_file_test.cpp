// vocab.txt, vocab.json, merges.txt, spiece.model and the "model" of tokenizer.json: what is
// refused.
#include "text/model/vocabulary_file.hpp"

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::text {
namespace {

using test::contains;
using test::message_of;

TEST_CASE("vocab.txt: lines end at line feeds only") {
  const VocabLines lines = read_vocab_txt("a\r\n\xC2\x85\n\n \nb\x0C\na\nc", "v");
  CHECK(lines.tokens == std::vector<std::string>{"a", "\xC2\x85", "", " ", "b\x0C", "a", "c"});
  CHECK(lines.duplicates == std::vector<std::size_t>{0});
  CHECK(lines.empty == std::vector<std::size_t>{2});
  CHECK(read_vocab_txt("", "v").tokens.empty());
  CHECK(read_vocab_txt("a\n", "v").tokens.size() == 1);
  CHECK(message_of([] { read_vocab_txt("a\n\xFF\n", "v"); }) == "v: line 2: not UTF-8");
  CHECK(read_vocab_txt("\xEF\xBB\xBFy\n", "v").tokens.front() == "\xEF\xBB\xBFy");
  CHECK(message_of([] { read_vocab_txt("\x1F\x8B\x08", "v"); }) ==
        "v: compressed by gzip: unpack it first, expected a text");
}

TEST_CASE("merges.txt: two tokens and one space between") {
  using Merges = std::vector<std::pair<std::string, std::string>>;
  CHECK(read_merges_txt("#version: 0.2\na b\n#version x\n# c\r\n", "m") ==
        Merges{{"a", "b"}, {"#", "c"}});
  CHECK(message_of([] { read_merges_txt("a b\nab\n", "m"); }) ==
        "m: line 2: ab, expected two tokens and one space between");
  CHECK(contains(message_of([] { read_merges_txt("a b c", "m"); }), "line 1: a b c"));
  CHECK(contains(message_of([] { read_merges_txt("a b\na ", "m"); }), "line 2: a , expected"));
  CHECK(contains(message_of([] { read_merges_txt(" b", "m"); }), "line 1:  b, expected"));
  CHECK(contains(message_of([] { read_merges_txt("a b\n\n", "m"); }), "line 2: empty"));
  CHECK(message_of([] { read_merges_txt("\xEF\xBB\xBF#version: 0.2\na b\n", "m"); }) ==
        "m: begins with a byte-order mark, expected the first merge: remove it");
}

TEST_CASE("vocab.json: tokens with ids") {
  CHECK(read_vocab_json(R"({"b":3,"a":0})", "v") == std::vector<VocabEntry>{{"a", 0}, {"b", 3}});
  CHECK(contains(message_of([] { read_vocab_json("[1]", "v"); }), "not an object"));
  CHECK(contains(message_of([] { read_vocab_json(R"({"a":-1})", "v"); }), "a has no id"));
  CHECK(read_vocab_json(R"({"a":16777215})", "v").front().second == 16777215);
  CHECK(message_of([] { read_vocab_json(R"({"a":16777216})", "v"); }) ==
        "v: byte 5: the token a has no id below 16777216");
  CHECK(contains(message_of([] { read_vocab_json(R"({"a":1,"b":1})", "v"); }), "the same id 1"));
}

std::string refused(const std::string& json) {
  return message_of([&] { make_model(parse_json_file(json, "t"), "t"); });
}

TEST_CASE("a model of tokenizer.json is refused by what is wrong with it") {
  CHECK(contains(refused("1"), "not an object"));
  CHECK(contains(refused(R"({"type":"Magic"})"), "the type \"Magic\" is not supported"));
  CHECK(contains(refused(R"({"type":"BPE","vocab":{},"merges":[],"dropout":0.1})"), "dropout"));
  CHECK(contains(refused(R"({"type":"BPE","vocab":{},"merges":[],"more":1})"), "\"more\""));
  CHECK(contains(refused(R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})"), "lacks b"));
  CHECK(contains(refused(R"({"type":"BPE","vocab":{"a":0},"merges":["a a"]})"), "lacks aa"));
  CHECK(contains(refused(R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})"), "merge 0"));
  CHECK(contains(refused(R"({"type":"BPE","merges":[]})"), "\"vocab\" is missing"));
  CHECK(contains(refused(R"({"type":"BPE","vocab":{"a":0,"aa":1},"merges":[["a","a"]],)"
                         R"("continuing_subword_prefix":"##"})"),
                 "shorter than the prefix"));
  CHECK(contains(refused(R"({"type":"WordPiece","vocab":{}})"), "\"unk_token\" is missing"));
  CHECK(contains(refused(R"({"type":"Unigram","vocab":[["a",0]],"unk_id":1})"), "unk_id is 1"));
  CHECK(contains(refused(R"({"type":"Unigram","vocab":[["a"]]})"), "piece 0"));
  CHECK(contains(refused(R"({"type":"WordLevel","vocab":{"a":0}})"), "\"unk_token\" is missing"));
}

TEST_CASE("a model without a type is known by its fields") {
  const auto size = [](const std::string& json) {
    return make_model(parse_json_file(json, "t"), "t")->size();
  };
  CHECK(size(R"({"vocab":{"a":0},"merges":[]})") == 1);
  CHECK(size(R"({"vocab":[["a",0]]})") == 1);
  CHECK(size(R"({"vocab":{"a":0},"unk_token":"a"})") == 1);
  CHECK(size(R"({"vocab":{"a":0},"unk_token":"a","continuing_subword_prefix":"##",)"
             R"("max_input_chars_per_word":100})") == 1);
}

// --- spiece.model
// ---------------------------------------------------------------------------------

std::string field(int number, const std::string& bytes) {
  return static_cast<char>(number << 3 | 2) + std::string(1, static_cast<char>(bytes.size())) +
         bytes;
}
std::string number(int field, int value) {
  return std::string(1, static_cast<char>(field << 3)) + static_cast<char>(value);
}
std::string piece(const std::string& text, int type,
                  const std::string& score = std::string(4, '\0')) {
  return field(1, field(1, text) + "\x15" + score + number(3, type));
}
std::string spiece_refused(const std::string& bytes) {
  return message_of([&] { read_spiece_model(bytes, "s"); });
}

TEST_CASE("spiece.model: fields and defaults") {
  const std::string bytes = piece("<unk>", 2) + piece("a", 1) + field(2, number(3, 2)) +
                            field(3, field(1, "nfkc") + number(3, 0)) + field(9, "skipped");
  const SpieceModel model = read_spiece_model(bytes, "s");
  CHECK(model.pieces.size() == 2);
  CHECK(model.type == SpieceModel::Type::kBpe);
  CHECK(model.normalizer == "nfkc");
  CHECK_FALSE(model.add_dummy_prefix);
  CHECK(model.remove_extra_whitespaces);
  CHECK(model.unk_id == 0);
  CHECK(model.bos_id == 1);
}

TEST_CASE("spiece.model: what is refused") {
  const std::string unk = piece("<unk>", 2);
  CHECK(contains(spiece_refused(""), "no pieces"));
  CHECK(contains(spiece_refused(piece("a", 1)), "no piece is of type unknown"));
  CHECK(contains(spiece_refused(unk + piece("u", 2)), "piece 1 (u) is a second unknown piece"));
  CHECK(contains(spiece_refused(unk + piece("a", 1) + piece("a", 4)), "(a) occurs twice"));
  CHECK(contains(spiece_refused(unk + piece("", 1)), "is empty"));
  CHECK(contains(spiece_refused(unk + piece("\xFF", 1)), "is not UTF-8"));
  CHECK(
      contains(spiece_refused(unk + piece("a", 1, std::string("\0\0\xC0\x7F", 4))), "not finite"));
  CHECK(contains(spiece_refused(unk + piece("a", 7)), "an unknown type of piece"));
  CHECK(contains(spiece_refused(unk + field(2, number(3, 5))), "an unknown type of model"));
  for (std::size_t cut = 1; cut < unk.size(); ++cut) {
    CAPTURE(cut);
    CHECK(contains(spiece_refused(unk.substr(0, cut)), "expected a SentencePiece model"));
  }
  CHECK(contains(spiece_refused(std::string(11, '\xFF')), "more than 64 bits"));
  CHECK(contains(spiece_refused("\x0B"), "unknown kind"));
  CHECK(contains(spiece_refused(std::string("\0\0", 2)), "field number"));
  CHECK(contains(spiece_refused(number(1, 1)), "wrong kind"));
  const std::string fallback = "\x98\x02\x01";  // field 35
  CHECK(contains(spiece_refused(unk + field(2, fallback)), "there is no piece <0x00>"));
}

}  // namespace
}  // namespace masque::text
