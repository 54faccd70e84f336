// Changes of vocabularies with merges, and in the files next to them.
#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "surgery/tokenizer_folder.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;

const std::string kVocab = R"({"<s>": 0, "a": 1, "b": 2, "ab": 3, "\u0120": 4, "rare": 5})";
const std::string kMerges = "#version: 0.2\na b\n";
const std::vector<std::string> kTokens{"<s>", "a", "b", "ab", "Ġ", "rare"};

TEST_CASE("vocab.json: ids move, escapes stay, merges of removed tokens go") {
  const TokenizerFolder folder({{"vocab.json", kVocab}, {"merges.txt", kMerges}});
  CHECK(folder.change({0, 4, 2, 3, 1}, {"<s>", "Ġ", "b", "ab", "a"})["vocab.json"] ==
        R"({"<s>": 0, "a": 4, "b": 2, "ab": 3, "\u0120": 1})");
  CHECK(folder.change({0, 1, 3, 4, 5}, {"<s>", "a", "ab", "Ġ", "rare"})["merges.txt"] ==
        "#version: 0.2\n");
  const ChangedFiles removed = folder.change({0, 1, 2, 4, 5}, {"<s>", "a", "b", "Ġ", "rare"});
  CHECK(removed["merges.txt"] == "#version: 0.2\n");
  CHECK(removed.notes == std::vector<std::string>{
                             "merges.txt: 0 of 1 merges are left, those without removed tokens"});
  CHECK(contains(folder.error({0, 1, 2, 3, 4, 5}, {"<s>", "x", "b", "ab", "Ġ", "rare"}),
                 "the merge 'a b' uses token 'a', which therefore cannot be renamed"));
}

TEST_CASE("vocab.json: new and renamed tokens are listed, in the file that lists them already") {
  auto tokens = kTokens;
  tokens[5] = "word";
  tokens.emplace_back("<new>");
  const std::vector<std::uint64_t> from{0, 1, 2, 3, 4, 5, kNew};
  const TokenizerFolder plain({{"vocab.json", kVocab}, {"merges.txt", kMerges}});
  ChangedFiles files = plain.change(from, tokens);
  CHECK(files["added_tokens.json"] == "{\n  \"word\": 5,\n  \"<new>\": 6\n}\n");
  CHECK(files["vocab.json"] == R"({"<s>": 0, "a": 1, "b": 2, "ab": 3, "\u0120": 4, "word": 5})");
  const TokenizerFolder listed({{"vocab.json", kVocab},
                                {"merges.txt", kMerges},
                                {"added_tokens.json", "{\"<m>\": 6}"},
                                {"tokenizer_config.json",
                                 R"({"added_tokens_decoder": {
  "6": {"content": "<m>", "lstrip": true, "normalized": false, "rstrip": false, "single_word": false, "special": true}
}, "mask_token": "<m>"})"}});
  tokens = {"<s>", "a", "b", "ab", "Ġ", "rare", "<mask>", "<new>"};
  files = listed.change({0, 1, 2, 3, 4, 5, 6, kNew}, tokens);
  CHECK(files["added_tokens.json"] == R"({"<mask>": 6,"<new>": 7})");
  CHECK(contains(files["tokenizer_config.json"],
                 "\"special\": true},\n  \"7\": {\"content\": \"<new>\", \"lstrip\": false, "
                 "\"normalized\": true, \"rstrip\": false, \"single_word\": false, \"special\": "
                 "false}\n}, \"mask_token\": \"<mask>\"}"));
  CHECK(files["vocab.json"] == "(as it was)");
}

TEST_CASE("a new token that begins with the mark of a space gets a note") {
  const auto notes = [](const TokenizerFolder& folder, const std::vector<std::string>& tokens) {
    std::vector<std::string> all{"a", "b"};
    std::vector<std::uint64_t> from{0, 1};
    for (const std::string& token : tokens) {
      all.push_back(token);
      from.push_back(kNew);
    }
    return folder.change(from, all).notes;
  };
  using Notes = std::vector<std::string>;
  const TokenizerFolder bytes({{"vocab.json", R"({"a":0,"b":1})"}, {"merges.txt", "\n"}});
  CHECK(notes(bytes, {"Ġlondon"}) ==
        Notes{"no text is tokenized as 'Ġlondon': add ' london' instead"});
  CHECK(notes(bytes, {"x", "Ġy", "Ġz"}) ==
        Notes{"no text is tokenized as any of 2 new tokens, the first 'Ġy': add ' y' instead"});
  CHECK(notes(bytes, {" london", "▁london", "Ġ"}).empty());
  const auto pieces = [](const std::string& words, const std::string& normalizer = "null") {
    return TokenizerFolder(
        {{"tokenizer.json", R"({"added_tokens":[],"normalizer":)" + normalizer +
                                R"(,"pre_tokenizer":)" + words +
                                R"(,"model":{"type":"BPE","vocab":{"a":0,"b":1},)"
                                R"("merges":[]}})"}});
  };
  CHECK(notes(pieces(R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"}]})"), {"Ġx"}) ==
        Notes{"no text is tokenized as 'Ġx': add ' x' instead"});
  CHECK(notes(pieces(R"({"type":"Metaspace"})"), {"▁x", "Ġx"}) ==
        Notes{"no text is tokenized as '▁x': add ' x' instead"});
  CHECK(notes(pieces("null"), {"▁x", "Ġx"}).empty());
  // Llama's: seen with the library tokenizers 0.23.
  const std::string prepend = R"({"type":"Prepend","prepend":"▁"})";
  const std::string replace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  const auto in_order = [](const std::string& steps) {
    return R"({"type":"Sequence","normalizers":[)" + steps + "]}";
  };
  const TokenizerFolder llama = pieces("null", in_order(prepend + "," + replace));
  CHECK(notes(llama, {"▁x"}) == Notes{"no text is tokenized as '▁x': add 'x' instead"});
  CHECK(notes(llama, {" x", "y"}) == Notes{"no text is tokenized as ' x': add 'x' instead"});
  CHECK(notes(llama, {"x", "▁"}).empty());
  CHECK(notes(pieces("null", in_order(replace)), {"▁x"}).empty());
}

TEST_CASE("vocab.json: an added token that leaves its place becomes an entry") {
  const TokenizerFolder folder({{"vocab.json", R"({"a":0,"b":1})"},
                                {"merges.txt", "#version: 0.2\n"},
                                {"added_tokens.json", R"({"<m>":2})"}});
  const ChangedFiles files = folder.change({2, 0, 1}, {"<m>", "a", "b"});
  CHECK(files["vocab.json"] == R"({"a":1,"b":2,"<m>":0})");
  CHECK(files["added_tokens.json"] == R"({"<m>":0})");
}

TEST_CASE("tokenizer.json: merges as pairs and as text, with a continuing prefix") {
  const auto left = [](const std::string& merges, const std::string& prefix) {
    const TokenizerFolder folder(
        {{"tokenizer.json",
          R"({"added_tokens":[],"model":{"type":"BPE","continuing_subword_prefix":)" + prefix +
              R"(,"vocab":{"a":0,"##b":1,"ab":2,"a##b":3},"merges":[)" + merges + "]}}"}});
    const std::string text = folder.change({0, 1, 3}, {"a", "##b", "a##b"})["tokenizer.json"];
    return text.substr(text.find("\"merges\""));
  };
  CHECK(left(R"(["a","##b"])", R"("##")") == "\"merges\":[]}}");
  CHECK(left(R"("a ##b")", R"("##")") == "\"merges\":[]}}");
  CHECK(left(R"(["a","##b"])", "null") == R"("merges":[["a","##b"]]}})");
}

TEST_CASE("special tokens stay") {
  const TokenizerFolder folder(
      {{"vocab.json", kVocab},
       {"merges.txt", kMerges},
       {"special_tokens_map.json", R"({"additional_special_tokens":["rare"]})"}});
  CHECK(contains(folder.error({0, 1, 2, 3, 4}, {"<s>", "a", "b", "ab", "Ġ"}),
                 "special_tokens_map.json: token 'rare' is a special token and cannot be removed"));
}

TEST_CASE("a SentencePiece model is left alone or refused") {
  const std::string model =
      InputFile::open(std::string(MASQUE_TEST_DATA) + "/text/conversions/albert/spiece.model")
          .read_all(1 << 20);
  const TokenizerFolder alone({{"spiece.model", model}});
  std::vector<std::uint64_t> from;
  for (std::uint64_t id = 0; id < 300; ++id) from.push_back(id);
  CHECK(alone.change(from, std::vector<std::string>(300)).texts.empty());
  std::swap(from[2], from[3]);
  CHECK(contains(alone.error(from, std::vector<std::string>(300)),
                 "spiece.model: row 2 would be removed or moved"));
  const store::Checkpoint checkpoint = store::open_checkpoint(alone.path());
  const auto names = TokenNames::load(alone.path());
  CHECK(contains(message_of([&] { check_editable(checkpoint, names); }),
                 "spiece.model: a SentencePiece model cannot be edited: save the tokenizer as "
                 "tokenizer.json"));
  const TokenizerFolder none({});
  CHECK_NOTHROW(check_editable(store::open_checkpoint(none.path()), names));
}

}  // namespace
}  // namespace masque::surgery
