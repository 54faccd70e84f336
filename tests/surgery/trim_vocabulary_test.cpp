// Smaller vocabularies of byte-pair and Unigram models: texts of the remaining tokens keep them.
#include <algorithm>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

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
using Passed = TokenList::Passed;

const std::string kData = MASQUE_TEST_DATA;

/// A folder with a table of as many rows as the tokenizer has tokens.
struct TrimExample {
  explicit TrimExample(const std::string& tokenizer_json) {
    write_file(folder / "in/tokenizer.json", tokenizer_json);
    open();
  }
  TrimExample(const std::string& vocab, const std::string& merges) {
    write_file(folder / "in/vocab.json", vocab);
    write_file(folder / "in/merges.txt", merges);
    open();
  }

  void open() {
    ExampleBert bert;
    bert.rows = TokenNames::load(folder / "in").size();
    bert.vocabulary.clear();
    bert.write(folder);
  }

  VocabularyReport trim(bool keep, TokenList list) const {
    return change_vocabulary(folder / "in", folder / "out",
                             [&](const VocabularyState& state) {
                               return keep ? plan_keep(state, list) : plan_remove(state, list);
                             },
                             {});
  }

  std::vector<std::string> left() const {
    const TokenNames names = TokenNames::load(folder / "out");
    std::vector<std::string> out;
    for (std::uint64_t id = 0; id < names.size(); ++id) out.push_back(names.token(id));
    return out;
  }

  TempFolder folder;
};

std::string all(const std::vector<std::string>& notes) {
  return fmt::format("{}", fmt::join(notes, "\n"));
}

const std::string kVocab =
    R"({"a":0,"b":1,"c":2,"ab":3,"abc":4,"bc":5,"\u0120":6,"\u0120a":7,"\u00ea":8,"<|endoftext|>":9})";
const std::string kMerges = "#version: 0.2\na b\nab c\nb c\n\u0120 a\n";

TEST_CASE("keep: bytes and what merges pass through stay, other merges go") {
  const TrimExample example(kVocab, kMerges);
  const VocabularyReport report = example.trim(true, {.entries = {"abc"}});
  CHECK(example.left() == std::vector<std::string>{"a", "b", "c", "ab", "abc", "Ġ", "ê"});
  CHECK(InputFile::open(example.folder / "out/merges.txt").read_all(1000) ==
        "#version: 0.2\na b\nab c\n");
  CHECK(contains(all(report.notes), "5 tokens of single bytes are also kept"));
  CHECK(contains(all(report.notes),
                 "1 token is also kept, because merges pass through it to "
                 "remaining tokens: 3 ab"));
  CHECK(contains(all(report.notes), "merges.txt: 2 of 4 merges are left"));
}

TEST_CASE("remove: what merges need stays, or takes along what is made of it") {
  const auto passed = [](const std::vector<std::string>& tokens, Passed policy) {
    const TrimExample example(kVocab, kMerges);
    const VocabularyReport report = example.trim(false, {.entries = tokens, .passed = policy});
    return fmt::format("{}: {}", fmt::join(example.left(), " "), all(report.notes));
  };
  CHECK(contains(passed({"bc"}, Passed::kKeep), "a b c ab abc Ġ Ġa ê <|endoftext|>: "));
  CHECK(
      contains(passed({"bc", "ab"}, Passed::kKeep), "a b c ab abc Ġ Ġa ê <|endoftext|>: 1 token "));
  CHECK(contains(passed({"bc", "ab"}, Passed::kRemove),
                 "a b c Ġ Ġa ê <|endoftext|>: 1 token is also removed, because merges make it from "
                 "removed tokens: 4 abc"));
  CHECK(contains(message_of([&] { passed({"ab"}, Passed::kKeep); }),
                 "merges pass through 3 ab to remaining tokens"));
}

TEST_CASE("a note says which characters go with a byte") {
  const TrimExample example(kVocab, kMerges);
  CHECK(contains(all(example.trim(false, {.entries = {"ê"}}).notes),
                 "byte 0xEA can no longer be encoded: text with these characters is damaged: "
                 "U+A000 to U+AFFF"));
  CHECK_FALSE(contains(all(TrimExample(kVocab, kMerges).trim(true, {.entries = {"bc"}}).notes),
                       "no longer be encoded"));
}

/// Every line of the goldens of a tokenizer has the same tokens after all others were removed.
/// Returns how many rows went.
std::uint64_t check_corpus(const std::string& json, const std::string& lines, std::size_t every) {
  const TrimExample example(json);
  const text::Tokenizer before = text::Tokenizer::open(example.folder / "in");
  std::vector<std::string> texts;
  std::set<std::string> tokens;
  std::size_t number = 0;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    if (number++ % every == 0) {
      const std::string text = parse_json_file(lines.substr(at, end - at), "cases").text_of("text");
      for (const TokenId id : before.encode(text, {}).ids) tokens.emplace(before.token(id));
      texts.push_back(text);
    }
    at = end + 1;
  }
  REQUIRE(texts.size() > 2);
  TokenList list{.entries = {tokens.begin(), tokens.end()}, .as = TokenList::As::kTokens};
  const VocabularyReport report = example.trim(true, list);
  const text::Tokenizer after = text::Tokenizer::open(example.folder / "out");
  const auto spelled = [](const text::Tokenizer& tokenizer, const std::string& text) {
    std::vector<std::string> out;
    for (const TokenId id : tokenizer.encode(text, {}).ids) out.emplace_back(tokenizer.token(id));
    return out;
  };
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(spelled(after, text) == spelled(before, text));
  }
  return report.rows_before - report.rows_after;
}

TEST_CASE("the tokens of a corpus alone tokenize it the same") {
  const std::string lines =
      InputFile::open(kData + "/text/tokenizers/gpt2.cases.jsonl").read_all(1 << 20);
  for (const char* name :
       {"evaluate/words/gpt2", "vocabulary/roberta", "vocabulary/albert", "vocabulary/t5"}) {
    CAPTURE(name);
    const std::string json =
        InputFile::open(kData + "/" + name + "/tokenizer.json").read_all(1 << 20);
    std::uint64_t gone = 0;
    for (const std::size_t every : {7U, 31U, 97U}) gone += check_corpus(json, lines, every);
    CHECK(gone > 0);
  }
}

const std::string kUnigramHead = R"({"version":"1.0","added_tokens":[],"normalizer":null,)"
                                 R"("pre_tokenizer":null,"post_processor":null,"decoder":null,)";

TEST_CASE("Unigram: pieces before the unknown one may go, unless the class knows its id") {
  const std::string json =
      kUnigramHead +
      R"("model":{"type":"Unigram","unk_id":2,"vocab":[["a",-1.0],["b",-2.0],["<unk>",0.0],["c",-9.0],["ab",-1.5]]}})";
  {
    const TrimExample example(json);
    example.trim(false, {.entries = {"a"}});
    const std::string text =
        InputFile::open(example.folder / "out/tokenizer.json").read_all(1 << 16);
    CHECK(contains(text, R"("unk_id":1,"vocab":[["b",-2.0],["<unk>",0.0],["c",-9.0])"));
  }
  {
    const TrimExample example(json);
    const VocabularyReport report = example.trim(true, {.entries = {"ab"}});
    CHECK(example.left() == std::vector<std::string>{"<unk>", "c", "ab"});
    CHECK(contains(all(report.notes), "the piece with the lowest score"));
  }
  const TrimExample example(json);
  write_file(example.folder / "in/tokenizer_config.json",
             R"({"tokenizer_class":"XLMRobertaTokenizerFast"})");
  CHECK(contains(message_of([&] { example.trim(false, {.entries = {"a"}}); }),
                 "row 2 belongs to the unknown piece"));
}

}  // namespace
}  // namespace masque::surgery
