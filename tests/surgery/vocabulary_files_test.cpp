// Changes of vocabularies in vocab.txt and in tokenizer.json with WordPiece and Unigram.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "surgery/tokenizer_folder.hpp"

namespace masque::surgery {
namespace {

using test::contains;

const std::string kLines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused0]\nthe\n##e\n";
const std::vector<std::string> kFileTokens{"[PAD]",  "[UNK]",     "[CLS]", "[SEP]",
                                           "[MASK]", "[unused0]", "the",   "##e"};

std::vector<std::uint64_t> all_of(const std::vector<std::string>& tokens) {
  std::vector<std::uint64_t> from;
  for (std::uint64_t id = 0; id < tokens.size(); ++id) from.push_back(id);
  return from;
}

/// The change with a token renamed.
std::vector<std::string> with(std::vector<std::string> tokens, std::size_t id, std::string token) {
  tokens[id] = std::move(token);
  return tokens;
}

TEST_CASE("vocab.txt: no change changes no file") {
  const TokenizerFolder folder({{"vocab.txt", kLines}});
  CHECK(folder.change(all_of(kFileTokens), kFileTokens).texts.empty());
}

TEST_CASE("vocab.txt: add, remove, permute, rename") {
  const TokenizerFolder folder({{"vocab.txt", kLines}});
  auto tokens = kFileTokens;
  tokens.emplace_back("naïve");
  auto from = all_of(kFileTokens);
  from.push_back(kNew);
  CHECK(folder.change(from, tokens)["vocab.txt"] == kLines + "naïve\n");
  CHECK(folder.change({0, 1, 2, 3, 4, 6, 7},
                      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##e"})["vocab.txt"] ==
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##e\n");
  CHECK(folder.change({0, 1, 2, 3, 4, 7, 6, 5}, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                                 "##e", "the", "[unused0]"})["vocab.txt"] ==
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n##e\nthe\n[unused0]\n");
  const ChangedFiles renamed = folder.change(all_of(kFileTokens), with(kFileTokens, 5, "covid"));
  CHECK(renamed["vocab.txt"] == "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncovid\nthe\n##e\n");
  CHECK(renamed.texts.size() == 1);
}

TEST_CASE("vocab.txt: line ends, empty and equal lines stay, ids without a token are empty lines") {
  const TokenizerFolder carriage({{"vocab.txt", "a\r\nb\r\nc\r\n"}});
  CHECK(carriage.change({0, 1, 2, kNew}, {"a", "b", "c", "d"})["vocab.txt"] ==
        "a\r\nb\r\nc\r\nd\r\n");
  CHECK(carriage.change({0, 2}, {"a", "c"})["vocab.txt"] == "a\r\nc\r\n");
  const TokenizerFolder open({{"vocab.txt", "a\n b \nc"}});
  CHECK(open.change({0, 1, 2, kNew}, {"a", " b ", "c", "d"})["vocab.txt"] == "a\n b \nc\nd\n");
  const TokenizerFolder twice({{"vocab.txt", "a\n\nb\na\n"}});
  CHECK(twice.change({0, 1, 2, 3, kNew}, {"a", "", "b", "a", "d"})["vocab.txt"] ==
        "a\n\nb\na\nd\n");
  CHECK(
      contains(twice.error({3, 1, 2, 0}, {"a", "", "b", "a"}), "'a' would have two ids, 0 and 3"));
  const TokenizerFolder hole({{"vocab.txt", "a\nb\n"}});
  CHECK(hole.change({0, 1, 2, kNew}, {"a", "b", "", "d"})["vocab.txt"] == "a\nb\n\nd\n");
  CHECK(hole.change({0, 1, kNew}, {"a", "b", ""}).texts.empty());
}

TEST_CASE(
    "vocab.txt: a token that the pre-tokenizer splits is listed, one that is rewritten reported") {
  const TokenizerFolder folder({{"vocab.txt", kLines}});
  const ChangedFiles files = folder.change(all_of(kFileTokens), with(kFileTokens, 5, "[E1]"));
  CHECK(files["added_tokens.json"] == "{\n  \"[E1]\": 5\n}\n");
  CHECK(files.notes.empty());
  const ChangedFiles upper = folder.change(all_of(kFileTokens), with(kFileTokens, 5, "Paris"));
  CHECK(upper.texts.size() == 1);
  REQUIRE(upper.notes.size() == 1);
  CHECK(contains(upper.notes[0], "no text is tokenized as 'Paris'"));
  const TokenizerFolder cased(
      {{"vocab.txt", kLines}, {"tokenizer_config.json", R"({"do_lower_case":false})"}});
  CHECK(cased.change(all_of(kFileTokens), with(kFileTokens, 5, "Paris")).notes.empty());
}

TEST_CASE("a token twice, and tokens with a role") {
  const TokenizerFolder folder({{"vocab.txt", kLines}});
  CHECK(contains(folder.error(all_of(kFileTokens), with(kFileTokens, 5, "the")),
                 "token 'the' would have two ids, 5 and 6"));
  CHECK(contains(folder.error({0, 1, 2, 3, 6}, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the"}),
                 "token '[MASK]' is the mask_token and cannot be removed"));
}

const std::string kWordPiece = R"({
  "version": "1.0",
  "padding": {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
  "added_tokens": [
    {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 4, "content": "<x>", "single_word": true, "lstrip": false, "rstrip": false, "normalized": false, "special": false}
  ],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[PAD]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"[PAD]": {"id": "[PAD]", "ids": [0], "tokens": ["[PAD]"]}}},
  "decoder": null,
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {"[PAD]": 0, "[UNK]": 1, "the": 2, "b\u00e9": 3}}
})";

TEST_CASE("tokenizer.json: a permutation changes ids alone, wherever they are") {
  const TokenizerFolder folder({{"tokenizer.json", kWordPiece}});
  const std::string text =
      folder.change({1, 0, 3, 2, 4}, {"[UNK]", "[PAD]", "bé", "the", "<x>"})["tokenizer.json"];
  std::string expected = kWordPiece;
  const auto swap = [&](const std::string& old, const std::string& now) {
    const std::size_t at = expected.find(old);
    REQUIRE(at != std::string::npos);
    expected.replace(at, old.size(), now);
  };
  swap(R"("pad_id": 0)", R"("pad_id": 1)");
  swap(R"({"id": 0, "content")", R"({"id": 1, "content")");
  swap(R"("ids": [0])", R"("ids": [1])");
  swap(R"("[PAD]": 0, "[UNK]": 1, "the": 2, "b\u00e9": 3)",
       R"("[PAD]": 1, "[UNK]": 0, "the": 3, "b\u00e9": 2)");
  CHECK(text == expected);
}

TEST_CASE("tokenizer.json: a rename reaches every place that spells the token") {
  const TokenizerFolder folder({{"tokenizer.json", kWordPiece},
                                {"special_tokens_map.json", R"({"pad_token": "[PAD]", "x": 1})"}});
  const ChangedFiles files =
      folder.change({0, 1, 2, 3, 4}, {"<pad>", "<unk>", "the", "été", "<y>"});
  const JsonValue root = parse_json_file(files["tokenizer.json"], "tokenizer.json");
  CHECK(root.find("padding")->find("pad_token")->text == "<pad>");
  CHECK(root.find("added_tokens")->items[0].find("content")->text == "<pad>");
  CHECK(root.find("added_tokens")->items.size() == 2);  // roles are found anyway
  CHECK(root.find("added_tokens")->items[1].find("content")->text == "<y>");
  CHECK(root.find("added_tokens")->items[1].find("single_word")->text == "true");
  const JsonValue& special = *root.find("post_processor")->find("special_tokens");
  CHECK(special.find("[PAD]")->find("tokens")->items[0].text == "<pad>");
  const JsonValue& model = *root.find("model");
  CHECK(model.find("unk_token")->text == "<unk>");
  CHECK(contains(files["tokenizer.json"],
                 R"("vocab": {"<pad>": 0, "<unk>": 1, "the": 2, "été": 3}})"));
  CHECK(files["special_tokens_map.json"] == R"({"pad_token": "<pad>", "x": 1})");
}

TEST_CASE("a token with a role by its usual name is named by a file when it is renamed") {
  const TokenizerFolder folder({{"vocab.txt", kLines}});
  const ChangedFiles files = folder.change(all_of(kFileTokens), with(kFileTokens, 4, "<mask>"));
  CHECK(files["tokenizer_config.json"] == "{\"mask_token\": \"<mask>\"}\n");
  CHECK(files["added_tokens.json"] == "(as it was)");
}

TEST_CASE("added_tokens.json goes with its last token") {
  const TokenizerFolder folder({{"vocab.txt", "a\nb c\n"}, {"added_tokens.json", "{\"b c\": 1}"}});
  CHECK(folder.change({0}, {"a"})["added_tokens.json"] == "(gone)");
  CHECK(folder.change({0, 1}, {"a", "b c"})["added_tokens.json"] == "(as it was)");
  const TokenizerFolder empty({{"vocab.txt", "a\nb\n"}, {"added_tokens.json", "{}"}});
  CHECK(empty.change({0}, {"a"})["added_tokens.json"] == "(as it was)");
  CHECK(empty.change({0, 1, kNew}, {"a", "b", "c d"})["added_tokens.json"] == R"({"c d": 2})");
}

TEST_CASE("tokenizer.json: added tokens that the model lacks move after it or into it") {
  const TokenizerFolder folder(
      {{"tokenizer.json", kWordPiece}, {"vocab.txt", "[PAD]\n[UNK]\nthe\nbé\n"}});
  // One token less in the model: <x> is the next number still.
  ChangedFiles files = folder.change({0, 1, 3, 4}, {"[PAD]", "[UNK]", "bé", "<x>"});
  CHECK(contains(files["tokenizer.json"], R"("vocab": {"[PAD]": 0, "[UNK]": 1, "b\u00e9": 2}})"));
  CHECK(contains(files["tokenizer.json"], R"({"id": 3, "content": "<x>", "single_word": true)"));
  CHECK(files["vocab.txt"] == "[PAD]\n[UNK]\nbé\n");
  // A new entry after <x>: the vocabulary takes it up.
  files = folder.change({0, 1, 2, 3, 4, kNew}, {"[PAD]", "[UNK]", "the", "bé", "<x>", "new"});
  CHECK(contains(files["tokenizer.json"], R"("b\u00e9": 3, "new": 5, "<x>": 4}})"));
  CHECK(files["vocab.txt"] == "[PAD]\n[UNK]\nthe\nbé\n<x>\nnew\n");
  // One that is split is listed besides, like the last one.
  files = folder.change({0, 1, 2, 3, 4, kNew}, {"[PAD]", "[UNK]", "the", "bé", "<x>", "a-b"});
  CHECK(contains(files["tokenizer.json"],
                 "    {\"id\": 5, \"content\": \"a-b\", \"single_word\": false, \"lstrip\": false, "
                 "\"rstrip\": false, \"normalized\": true, \"special\": false}\n  ]"));
}

TEST_CASE("tokenizer.json: what is wrong is reported with its place") {
  const auto error = [](const std::string& text) {
    const TokenizerFolder folder({{"tokenizer.json", text}});
    return folder.error({0, 1, 2, kNew}, {"a", "b", "c", "d"});
  };
  CHECK(contains(error("{\"model\": "), "tokenizer.json: byte "));
  CHECK(contains(
      error(
          R"({"added_tokens":[{"id":7,"content":"c"}],"model":{"type":"BPE","vocab":{"a":0,"b":1}}})"),
      "added token 'c' has id 7 in the file, but tokenizers assign it id 2"));
  CHECK(contains(error(R"({"model":{"type":"Unigram","vocab":[["a",0],["b"],["c",0]]}})"),
                 "expected a piece and its score"));
  CHECK(contains(error(R"({"model":{"type":"Unigram","vocab":[["a",0],["b",0],["c",0]]}})"),
                 "no list \"added_tokens\""));
  const TokenizerFolder folder({{"tokenizer.json", kWordPiece}});
  CHECK(contains(folder.error({0, 2, 3, 4}, {"[PAD]", "the", "bé", "<x>"}), "'[UNK]' is the unk"));
}

TEST_CASE("files that do not agree: reported where nothing changes, refused where something does") {
  const TokenizerFolder folder(
      {{"tokenizer.json", kWordPiece}, {"vocab.txt", "[PAD]\n[UNK]\nTHE\nbé\n"}});
  const std::vector<std::string> tokens{"[PAD]", "[UNK]", "the", "bé", "<x>"};
  const ChangedFiles files = folder.change({0, 1, 2, 3, 4}, tokens);
  CHECK(files.texts.empty());
  REQUIRE(files.notes.size() == 1);
  CHECK(contains(files.notes[0], "vocab.txt: id 2 is 'THE', but tokenizer.json says 'the'"));
  CHECK(contains(folder.error({0, 1, 2, 3, 4}, with(tokens, 2, "new")),
                 "expected files that agree on the changed tokens"));
}

const std::string kUnigram =
    R"({"added_tokens":[{"id":0,"content":"<unk>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
"normalizer":null,"pre_tokenizer":null,"post_processor":{"type":"BertProcessing","sep":["▁a",1],"cls":["<unk>",0]},
"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>", 0.0],["▁a", -1.25],["▁b", -2.50],["c", -3e0]]}})";

TEST_CASE("Unigram: pieces go with their scores, new tokens are listed") {
  const TokenizerFolder folder({{"tokenizer.json", kUnigram}});
  ChangedFiles files = folder.change({0, 3, 1}, {"<unk>", "c", "▁a"});
  CHECK(contains(files["tokenizer.json"],
                 R"("unk_id":0,"vocab":[["<unk>", 0.0],["c", -3e0],["▁a", -1.25]]}})"));
  CHECK(contains(files["tokenizer.json"], R"("sep":["▁a",2],"cls":["<unk>",0])"));
  CHECK(contains(folder.change({1, 0, 2, 3}, {"▁a", "<unk>", "▁b", "c"})["tokenizer.json"],
                 R"("unk_id":1,"vocab":[["▁a", -1.25],["<unk>", 0.0])"));
  const TokenizerFolder fixed({{"tokenizer.json", kUnigram},
                               {"tokenizer_config.json", R"({"tokenizer_class":"T5Tokenizer"})"}});
  CHECK(contains(fixed.error({1, 0, 2, 3}, {"▁a", "<unk>", "▁b", "c"}),
                 "row 0 belongs to the unknown piece"));
  files = folder.change({0, 1, 2, 3, kNew}, {"<unk>", "▁a", "▁b", "c", "<new>"});
  CHECK(contains(
      files["tokenizer.json"],
      R"("special":true},{"id":4,"content":"<new>","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}])"));
  CHECK(contains(files["tokenizer.json"], R"(["c", -3e0]]}})"));
  // In front of a piece it must be a piece itself.
  files = folder.change({0, 1, 2, kNew, 3}, {"<unk>", "▁a", "▁b", "<new>", "c"});
  CHECK(contains(files["tokenizer.json"], R"(["▁b", -2.50],["<new>", 0.0],["c", -3e0]]}})"));
  CHECK(contains(folder.error({0, 1, 2, kNew, 3}, {"<unk>", "▁a", "▁b", "", "c"}),
                 "id 3 would have no token"));
  CHECK(contains(folder.error({1, 2}, {"▁a", "▁b"}), "'<unk>' is "));
}

// Quadratic work would take hours: the limit is that of every test.
TEST_CASE("a vocabulary of 200 000 tokens is rewritten in one pass") {
  std::string vocab;
  std::vector<std::string> tokens{"[UNK]"};
  std::vector<std::uint64_t> from{0};
  for (std::uint64_t id = 0; id < 200000; ++id) {
    const std::string token = fmt::format("token{}", id);
    vocab += fmt::format(",\n      \"{}\": {}", token, id + 1);
    if (id == 5) continue;
    tokens.push_back(token);
    from.push_back(id + 1);
  }
  const TokenizerFolder folder(
      {{"tokenizer.json",
        fmt::format(
            R"({{"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{{"[UNK]": 0{}}}}}}})",
            vocab)}});
  const ChangedFiles files = folder.change(from, tokens);
  CHECK(contains(files["tokenizer.json"], "\"token4\": 5,\n      \"token6\": 6,"));
}

}  // namespace
}  // namespace masque::surgery
