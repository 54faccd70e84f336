// The vocabulary of a GGUF file encodes texts as the files that it was made of.
#include "text/open/gguf_vocabulary.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::text {
namespace {

std::string read_class_file(const std::string& name) {
  return test::read_file(MASQUE_TEST_DATA "/text/classes/" + name);
}

std::vector<std::string> texts() {
  std::vector<std::string> all;
  const JsonValue list = parse_json_file(read_class_file("texts.json"), "texts.json");
  for (const JsonValue& item : list.items) all.push_back(item.text);
  return all;
}

void check_alike(const Tokenizer& found, const Tokenizer& expected) {
  std::size_t tokens = 0;
  for (const std::string& text : texts()) {
    CAPTURE(text);
    for (const bool special : {false, true}) {
      const auto own = found.encode(text, {.special = special}).ids;
      CHECK(own == expected.encode(text, {.special = special}).ids);
      tokens += own.size();
      CHECK(found.decode(own, false) == expected.decode(own, false));
    }
  }
  CHECK(tokens > 200);
}

/// As the converter of llama.cpp writes the pieces of a SentencePiece model.
GgufVocabulary vocabulary_of(const SpieceModel& spiece) {
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  for (const ScoredPiece& piece : spiece.pieces) {
    vocabulary.tokens.push_back(piece.text);
    vocabulary.scores.push_back(static_cast<float>(piece.score));
    vocabulary.types.push_back(static_cast<int>(piece.type));
  }
  vocabulary.roles = {{"bos", spiece.bos_id}, {"eos", spiece.eos_id}, {"unk", spiece.unk_id}};
  return vocabulary;
}

TEST_CASE("pieces of SentencePiece are read as the classes of Llama and Gemma read them") {
  for (const std::string kind : {"llama", "gemma"}) {
    CAPTURE(kind);
    test::TempFolder folder;
    const std::string bytes = read_class_file(kind + ".model");
    test::write_file(folder / "tokenizer.model", bytes);
    const bool gemma = kind == "gemma";
    test::write_file(folder / "tokenizer_config.json",
                     gemma ? R"({"tokenizer_class": "GemmaTokenizer", "add_bos_token": true})"
                           : R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true})");
    GgufVocabulary vocabulary = vocabulary_of(read_spiece_model(bytes, kind));
    if (gemma) vocabulary.add_space_prefix = false;
    check_alike(Tokenizer(read_gguf_vocabulary(vocabulary, "model.gguf")),
                Tokenizer::open(folder.path()));
  }
}

TEST_CASE("Unigram is read as the class of T5 reads it") {
  const std::string bytes = read_class_file("t5.model");
  const SpieceModel spiece = read_spiece_model(bytes, "t5");
  GgufVocabulary vocabulary = vocabulary_of(spiece);
  vocabulary.model = "t5";
  vocabulary.charsmap = spiece.precompiled_charsmap;
  vocabulary.remove_extra_whitespaces = spiece.remove_extra_whitespaces;
  vocabulary.add_bos = false;
  vocabulary.add_eos = true;
  vocabulary.roles = {{"eos", spiece.eos_id}, {"unk", spiece.unk_id}, {"pad", spiece.pad_id}};
  REQUIRE_FALSE(vocabulary.charsmap.empty());
  test::TempFolder folder;
  test::write_file(folder / "spiece.model", bytes);
  test::write_file(folder / "tokenizer_config.json",
                   R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 0})");
  const Tokenizer expected = Tokenizer::open(folder.path());
  check_alike(Tokenizer(read_gguf_vocabulary(vocabulary, "model.gguf")), expected);
  test::TempFolder again;
  for (const auto& [name, content] : files_of_gguf_vocabulary(vocabulary, "model.gguf"))
    test::write_file(again / name, content);
  check_alike(Tokenizer::open(again.path()), expected);
  vocabulary.add_eos = false;
  CHECK(test::message_of([&] {
          read_gguf_vocabulary(vocabulary, "m.gguf");
        }).find("add_eos_token false") != std::string::npos);
}

GgufVocabulary byte_pairs(const std::string& pre) {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = pre;
  for (const VocabEntry& entry : read_vocab_json(read_class_file("vocab.json"), "vocab.json")) {
    const auto id = static_cast<std::size_t>(entry.second);
    if (id >= vocabulary.tokens.size()) vocabulary.tokens.resize(id + 1);
    vocabulary.tokens[id] = entry.first;
  }
  for (const auto& [left, right] : read_merges_txt(read_class_file("merges.txt"), "merges.txt"))
    vocabulary.merges.push_back(left + " " + right);
  vocabulary.types.assign(vocabulary.tokens.size(), 1);
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.tokens[i] != "<|endoftext|>") continue;
    vocabulary.types[i] = 3;
    vocabulary.roles = {{"eos", static_cast<TokenId>(i)}};
  }
  return vocabulary;
}

TEST_CASE("byte-level BPE is read as the classes of GPT-2 and Qwen2 read it") {
  for (const auto& [pre, name] :
       {std::pair("gpt-2", "GPT2Tokenizer"), std::pair("qwen2", "Qwen2Tokenizer")}) {
    CAPTURE(name);
    test::TempFolder folder;
    for (const char* file : {"vocab.json", "merges.txt"})
      test::write_file(folder / file, read_class_file(file));
    test::write_file(folder / "tokenizer_config.json",
                     std::string(R"({"tokenizer_class": ")") + name + "\"}");
    check_alike(Tokenizer(read_gguf_vocabulary(byte_pairs(pre), "model.gguf")),
                Tokenizer::open(folder.path()));
  }
}

/// As the converter of llama.cpp writes BERT's vocab.txt.
GgufVocabulary words() {
  GgufVocabulary vocabulary;
  vocabulary.model = "bert";
  const std::string text = read_class_file("vocab.txt");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const auto id = static_cast<TokenId>(vocabulary.tokens.size());
    bool special = false;
    for (const auto& [role, token] : {std::pair("unk", "[UNK]"),
                                      {"sep", "[SEP]"},
                                      {"pad", "[PAD]"},
                                      {"cls", "[CLS]"},
                                      {"mask", "[MASK]"}}) {
      if (line != token) continue;
      vocabulary.roles.emplace_back(role, id);
      special = true;
    }
    const bool inner = line.starts_with("##");
    vocabulary.tokens.push_back(special ? line : inner ? line.substr(2) : "\u2581" + line);
    vocabulary.types.push_back(special ? 3 : 1);
  }
  return vocabulary;
}

TEST_CASE("WordPiece is read as BERT's class reads it, and written back") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", read_class_file("vocab.txt"));
  const std::string settings = folder / "tokenizer_config.json";
  test::write_file(settings, R"({"tokenizer_class": "BertTokenizer"})");
  const Tokenizer bert = Tokenizer::open(folder.path());
  const GgufVocabulary first = words();
  check_alike(Tokenizer(read_gguf_vocabulary(first, "model.gguf")), bert);
  GgufVocabulary made = make_gguf_vocabulary(bert, folder.path());
  CHECK(made.model == "bert");
  CHECK(made.tokens == first.tokens);
  CHECK(made.types == first.types);
  std::ranges::sort(made.roles);
  GgufVocabulary sorted = first;
  std::ranges::sort(sorted.roles);
  CHECK(made.roles == sorted.roles);
  // llama.cpp lowers the case of every text.
  test::write_file(settings, R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})");
  const Tokenizer cased = Tokenizer::open(folder.path());
  CHECK(test::message_of([&] {
          make_gguf_vocabulary(cased, folder.path());
        }).find("do not describe this tokenizer") != std::string::npos);
  GgufVocabulary odd = first;
  odd.tokens.back() = "a\nb";
  CHECK(test::message_of([&] {
          read_gguf_vocabulary(odd, "m.gguf");
        }).find("expected a line of text") != std::string::npos);
}

TEST_CASE("the files of a vocabulary give its ids") {
  GgufVocabulary gemma = vocabulary_of(read_spiece_model(read_class_file("gemma.model"), "g"));
  gemma.add_space_prefix = false;
  GgufVocabulary begins = byte_pairs("llama-bpe");
  begins.roles.emplace_back("bos", begins.roles.front().second);
  for (const GgufVocabulary& vocabulary :
       {vocabulary_of(read_spiece_model(read_class_file("llama.model"), "l")), gemma,
        byte_pairs("gpt-2"), byte_pairs("starcoder"), begins, words()}) {
    CAPTURE(vocabulary.model);
    CAPTURE(vocabulary.pre);
    test::TempFolder folder;
    for (const auto& [name, content] : files_of_gguf_vocabulary(vocabulary, "model.gguf"))
      test::write_file(folder / name, content);
    check_alike(Tokenizer::open(folder.path()),
                Tokenizer(read_gguf_vocabulary(vocabulary, "model.gguf")));
  }
}

/// What a file says of the tokenizer of `folder`, which is the same again.
GgufVocabulary made_of(const std::string& folder) {
  const Tokenizer tokenizer = Tokenizer::open(folder);
  GgufVocabulary made = make_gguf_vocabulary(tokenizer, folder);
  check_alike(Tokenizer(read_gguf_vocabulary(made, "model.gguf")), tokenizer);
  CHECK(made.tokens.size() == tokenizer.size());
  CHECK(made.types.size() == made.tokens.size());
  return made;
}

TEST_CASE("the tokenizer of a folder becomes the metadata of a file") {
  for (const std::string kind : {"llama", "gemma"}) {
    CAPTURE(kind);
    test::TempFolder folder;
    test::write_file(folder / "tokenizer.model", read_class_file(kind + ".model"));
    test::write_file(folder / "tokenizer_config.json",
                     R"({"tokenizer_class": ")" + std::string(kind == "gemma" ? "Gemma" : "Llama") +
                         R"(Tokenizer", "add_bos_token": true})");
    const GgufVocabulary made = made_of(folder.path());
    CHECK(made.model == "llama");
    CHECK(made.add_bos == true);
    CHECK(made.add_space_prefix == (kind == "llama"));
    const SpieceModel spiece = read_spiece_model(read_class_file(kind + ".model"), kind);
    for (std::size_t i = 0; i < spiece.pieces.size(); ++i) {
      CHECK(made.tokens[i] == spiece.pieces[i].text);
      CHECK(made.types[i] == static_cast<int>(spiece.pieces[i].type));
      CHECK(made.scores[i] == static_cast<float>(spiece.pieces[i].score));
    }
  }
  for (const std::string pre : {"gpt-2", "qwen2", "llama-bpe", "dbrx", "stablelm2"}) {
    CAPTURE(pre);
    test::TempFolder folder;
    const GgufVocabulary first = byte_pairs(pre);
    // Spelled as SentencePiece's begin of a text, but a text.
    CHECK(std::ranges::count(first.tokens, "<s>") == 1);
    for (const auto& [name, content] : files_of_gguf_vocabulary(first, "model.gguf"))
      test::write_file(folder / name, content);
    const GgufVocabulary made = made_of(folder.path());
    CHECK(made.pre == pre);
    CHECK(made.tokens == first.tokens);
    CHECK(made.types == first.types);
    CHECK(made.merges == first.merges);
    CHECK(made.roles == first.roles);
  }
}

TEST_CASE("tokenizers that no metadata describe are refused") {
  const auto message = [](const std::string& file, std::string_view text,
                          const std::string& settings) {
    test::TempFolder folder;
    test::write_file(folder / file, text);
    test::write_file(folder / "tokenizer_config.json", settings);
    return test::message_of(
        [&] { make_gguf_vocabulary(Tokenizer::open(folder.path()), folder.path()); });
  };
  const std::string mpnet = R"({"tokenizer_class": "MPNetTokenizer"})";
  CHECK(message("vocab.txt", read_class_file("vocab.txt"), mpnet)
            .find("do not describe this tokenizer") != std::string::npos);
  // A step that llama.cpp does not have.
  test::TempFolder folder;
  for (const auto& [name, content] : files_of_gguf_vocabulary(byte_pairs("gpt-2"), "model.gguf"))
    test::write_file(folder / name, content);
  std::string json = test::read_file(folder / "tokenizer.json");
  const std::string none = R"("normalizer":null)";
  REQUIRE(json.find(none) != std::string::npos);
  json.replace(json.find(none), none.size(), R"("normalizer":{"type":"Lowercase"})");
  CHECK(message("tokenizer.json", json, "{}").find("do not describe this tokenizer") !=
        std::string::npos);
}

TEST_CASE("vocabularies that are not read are refused by name") {
  const auto message = [](GgufVocabulary vocabulary) {
    return test::message_of([&] { read_gguf_vocabulary(vocabulary, "m.gguf"); });
  };
  GgufVocabulary good = byte_pairs("gpt-2");
  CHECK(message(good) == "(nothing thrown)");
  GgufVocabulary bad = good;
  bad.pre = "default";
  CHECK(message(bad).starts_with("m.gguf: tokenizer.ggml.pre is \"default\", expected "));
  bad = good;
  bad.model = "rwkv";
  CHECK(message(bad) ==
        "m.gguf: tokenizer.ggml.model is \"rwkv\", expected llama, gpt2, bert or t5");
  bad = good;
  bad.types.pop_back();
  CHECK(message(bad).find("types of tokens, expected one for each of") != std::string::npos);
  bad = good;
  bad.merges.emplace_back("x");
  CHECK(message(bad) == "m.gguf: merge 'x', expected two tokens");
  bad = good;
  bad.roles = {{"bos", 100000}};
  CHECK(message(bad).starts_with("m.gguf: token 100000 for bos, expected one of "));
  bad = good;
  bad.tokens.clear();
  CHECK(message(bad) == "m.gguf: no tokenizer.ggml.tokens, expected some");
}

}  // namespace
}  // namespace masque::text
