// embed-fix rename and case.
#include "surgery/vocabulary/vocabulary_spelling.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "support/message.hpp"
#include "surgery/example.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

const std::string kBias = "cls.predictions.bias";

std::string read(const std::string& path) { return InputFile::open(path).read_all(1 << 20); }

VocabularyReport rename(const TempFolder& folder, const std::vector<std::string>& entries) {
  return change_vocabulary(folder / "in", folder / "out",
                           [&](const VocabularyState& state) {
                             std::vector<std::pair<std::string, std::string>> names;
                             names.reserve(entries.size());
                             for (const std::string& entry : entries)
                               names.push_back(parse_renaming(state, entry));
                             return plan_rename(state, names);
                           },
                           {});
}

TEST_CASE("rename: the weights stay as they are, bit by bit") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const VocabularyReport report = rename(folder, {"[unused0]=covid", "the=of", "of=the"});
  CHECK(report.changed_tensors.empty());
  CHECK(report.edited_files == std::vector<std::string>{"vocab.txt"});
  CHECK(read(folder / "in/model.safetensors") == read(folder / "out/model.safetensors"));
  CHECK(read(folder / "out/vocab.txt") ==
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncovid\nof\nthe\nand\n");
}

TEST_CASE("rename: which = separates, and what is refused") {
  const TempFolder folder;
  ExampleBert bert;
  bert.vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n=\na=b\nx\n";
  bert.write(folder);
  const auto error = [&](const std::vector<std::string>& entries) {
    return message_of([&] { rename(folder, entries); });
  };
  CHECK_THROWS_WITH_AS(rename(folder, {"x"}), "found 'x', expected OLD=NEW", UsageError);
  CHECK_THROWS_WITH_AS(rename(folder, {"x="}), "found 'x=', expected OLD=NEW", UsageError);
  CHECK(contains(error({"y=z"}), "'y': no such token in vocab.txt"));
  CHECK(contains(error({"x=y", "x=z"}), "'x' is listed twice"));
  CHECK(contains(error({"x=[PAD]"}), "'[PAD]' would have two ids"));
  rename(folder, {"==e", "a=b=c"});
  CHECK(read(folder / "out/vocab.txt") == "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ne\nc\nx\n");
}

VocabularyReport cased(const TempFolder& folder, bool upper, std::uint64_t multiple = 1) {
  VocabularyRequest request;
  request.change_files = [](CheckpointEdit& edit, const TokenNames& names,
                            const VocabularyChange& change) {
    std::vector<std::string> notes = keep_case(edit);
    for (std::string& note : change_vocabulary_files(edit, names, change))
      notes.push_back(std::move(note));
    return notes;
  };
  return change_vocabulary(
      folder / "in", folder / "out",
      [&](const VocabularyState& state) {
        return plan_case(state, {upper, multiple});
      },
      request);
}

TEST_CASE("case: forms are copies of their rows, and the tokenizer tells them apart") {
  const TempFolder folder;
  ExampleBert bert;
  bert.rows = 10;
  bert.vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused0]\nthe\nété\n##s\n##ly\n";
  bert.write(folder);
  cased(folder, false);
  CHECK(read(folder / "out/vocab.txt") == bert.vocabulary + "The\nÉté\n##S\n");
  CHECK(read(folder / "out/tokenizer_config.json") ==
        "{\"do_lower_case\": false,\"strip_accents\": true}\n");
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  const auto before = values_of(in, kTable);
  const auto after = values_of(out, kTable);
  REQUIRE(after.size() == 13 * 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(after[10 * 5 + i] == before[6 * 5 + i]);
    CHECK(after[11 * 5 + i] == before[7 * 5 + i]);
    CHECK(after[12 * 5 + i] == before[8 * 5 + i]);
  }
  CHECK(values_of(out, kBias)[10] == values_of(in, kBias)[6]);
  const text::Tokenizer tokenizer = text::Tokenizer::open(folder / "out");
  CHECK(tokenizer.encode("the The THE Thes TheS", {}).ids ==
        std::vector<TokenId>{6, 10, 1, 10, 8, 10, 12});
}

TEST_CASE("case: capitals, a round size, and rows that had no token") {
  const TempFolder folder;
  ExampleBert bert;  // 11 rows, 9 tokens
  bert.write(folder);
  const VocabularyReport report = cased(folder, true, 8);
  CHECK(report.rows_after == 16);
  // Two rows without token are filled, four copies are added, one row pads.
  CHECK(report.rows_gone == 0);
  CHECK(report.copied_rows == 6);
  CHECK(report.new_rows.size() == 1);
  CHECK(read(folder / "out/vocab.txt") == kVocabulary + "The\nTHE\nOf\nOF\nAnd\nAND\n");
}

TEST_CASE("case: the normalizers of tokenizer.json") {
  const TempFolder folder;
  ExampleBert bert;
  bert.vocabulary.clear();
  bert.write(folder);
  const auto json = [&](const std::string& normalizer) {
    write_file(
        folder / "in/tokenizer.json",
        R"({"added_tokens":[],"normalizer":)" + normalizer +
            R"(,"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":null,"decoder":null,"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"the":1}}})");
  };
  const auto normalizer_of = [&](const std::string& normalizer) {
    const TempFolder other;
    json(normalizer);
    const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
    CheckpointEdit edit(checkpoint);
    keep_case(edit);
    const std::string text = *edit.file_text("tokenizer.json");
    const JsonValue root = parse_json_file(text, "tokenizer.json");
    const JsonValue& value = *root.find("normalizer");
    return text.substr(value.begin, value.end - value.begin);
  };
  CHECK(
      normalizer_of(
          R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true})") ==
      R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":true,"lowercase":false})");
  CHECK(
      normalizer_of(
          R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"Lowercase"},{"type":"StripAccents"}]})") ==
      R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"}]})");
  CHECK(contains(message_of([&] { normalizer_of("null"); }), "does not lower-case"));
}

}  // namespace
}  // namespace masque::surgery
