// Repair of UTF-8, built-in tokenizers, refusals, training.
#include "text/tokenizer.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/utf8.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/train/trained_tokenizer.hpp"

namespace masque::text {
namespace {

std::string repaired(std::string_view text, std::size_t& count) {
  std::string out;
  count = append_replacing_invalid(text, out);
  return out;
}

TEST_CASE("every maximal subpart that is not UTF-8 becomes one U+FFFD, as in Python") {
  // bytes.decode("utf-8", "replace") of the same bytes.
  const std::vector<std::tuple<std::string, std::string, std::size_t>> cases{
      {"abc", "abc", 0},
      {"a\xFFz", "a\uFFFDz", 1},
      {"\xC0\xAF", "\uFFFD\uFFFD", 2},
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD", 3},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD", 3},
      {"\xF0\x9F\x98", "\uFFFD", 1},
      {"\xF0\x9F\x98x", "\uFFFDx", 1},
      {"\xE4\xB8", "\uFFFD", 1},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", 4},
      {"\xF0\x80\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", 4},
      {"long ascii text \xE4\xB8\xAD and \xE4\xB8 end", "long ascii text 中 and \uFFFD end", 1}};
  for (const auto& [bad, good, number] : cases) {
    std::size_t count = 0;
    CHECK(repaired(bad, count) == good);
    CHECK(count == number);
  }
}

TEST_CASE("bytes are a tokenizer") {
  const Tokenizer bytes = Tokenizer::open("bytes");
  CHECK(bytes.size() == 256);
  const Encoding got = bytes.encode("aé", {});
  CHECK(got.ids == std::vector<TokenId>{97, 0xC3, 0xA9});
  CHECK(bytes.decode(got.ids, false) == "aé");
  CHECK(bytes.decode({0xC3}, false) == "\uFFFD");
}

TEST_CASE("characters and words of a list") {
  test::TempFolder folder;
  const std::string path = folder.path() + "/vocab.txt";
  std::ofstream(path) << "[UNK]\n[MASK]\na\nb\n中\nab\n";
  const Tokenizer characters = Tokenizer::open("chars:" + path);
  CHECK(characters.encode("ab中x[MASK]", {}).ids == std::vector<TokenId>{2, 3, 4, 0, 1});
  CHECK(characters.decode({2, 3, 4}, false) == "ab中");
  const Tokenizer words = Tokenizer::open("whitespace:" + path);
  CHECK(words.encode(" ab  a zz ", {}).ids == std::vector<TokenId>{5, 2, 0});
}

TEST_CASE("a folder with vocab.txt may name the tokens of the template") {
  test::TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path() + "/" + name) << text;
  };
  const auto ids = [&](const TokenizerOptions& options = {}) {
    const Tokenizer tokenizer = Tokenizer::open(folder.path(), options);
    return tokenizer.encode("a [CLS] zz", {.special = true}).ids;
  };
  using TokenIds = std::vector<TokenId>;
  write("vocab.txt", "[PAD]\n[EOS]\n[UNK]\n[SOS]\n[MASK]\n[CLS]\n[SEP]\na\n");
  CHECK(ids() == TokenIds{5, 7, 5, 2, 6});
  // As BertTokenizer of transformers 5.23: [CLS] has no role then, and is three unknown words.
  const TokenIds named{3, 7, 2, 2, 2, 2, 1};
  CHECK(ids({.roles = {{"cls", "[SOS]"}, {"sep", "[EOS]"}}}) == named);
  write("special_tokens_map.json", R"({"cls_token":{"content":"[SOS]"},"sep_token":"[EOS]"})");
  CHECK(ids() == named);
  CHECK(ids({.roles = {{"cls", "[PAD]"}}}) == named);
  write("tokenizer_config.json", R"({"unk_token":"a"})");
  CHECK(ids() == TokenIds{3, 7, 7, 7, 7, 7, 1});
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  CHECK(tokenizer.encode_pair("a", "a", {.special = true}).ids == TokenIds{3, 7, 1, 7, 1});
  CHECK(tokenizer.roles().cls == 3);
  // special_tokens_map.json goes first, but for a tokenizer_config.json with the flags of all.
  write("tokenizer_config.json", R"({"cls_token":"[NONE]"})");
  CHECK(ids() == named);
  // The map is an old copy then.
  write("tokenizer_config.json", R"({"cls_token":"[NONE]","added_tokens_decoder":{}})");
  CHECK(ids() == TokenIds{8, 7, 2, 2, 2, 2, 6});
}

TEST_CASE("a decoder of CTC joins repeated tokens") {
  // tokenizers 0.23.3: decoders.CTC().decode(…)
  const auto decoded = [](const std::string& fields) {
    const Tokenizer tokenizer(read_tokenizer_json(
        R"({"decoder":{"type":"CTC")" + fields +
            R"(},"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"|":1,"<pad>":2,"b":3,"<p>":4}}})",
        "t"));
    return tokenizer.decode({0, 0, 2, 2, 0, 1, 1, 3, 2, 4}, false);
  };
  CHECK(decoded("") == "aa b<p>");
  CHECK(decoded(R"(,"cleanup":false)") == "aa|b<p>");
  CHECK(decoded(R"(,"pad_token":"<p>","word_delimiter_token":"b")") == "a<pad>a| <pad>");
}

TEST_CASE("the mask token of config.json has the role that no file of the tokenizer gives") {
  const test::TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path() + "/" + name) << text;
  };
  write(
      "tokenizer.json",
      R"({"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"[MASK]":1,"b":2,"<m>":3}}})");
  const auto mask = [&](const TokenizerOptions& options = {}) {
    return Tokenizer::open(folder.path(), options).roles().mask;
  };
  CHECK(mask() == 1);  // by its usual name
  write("config.json", R"({"model_type":"llada","mask_token_id":3})");
  CHECK(mask() == 3);
  for (const char* none : {"null", "4", "-1", "1.5", "\"3\""}) {
    CAPTURE(none);
    write("config.json", std::string(R"({"model_type":"llada","mask_token_id":)") + none + "}");
    CHECK(mask() == 1);
  }
  // The config of the model counts, wherever the tokenizer is.
  const test::TempFolder model;
  std::ofstream(model.path() + "/config.json") << R"({"model_type":"llada","mask_token_id":2})";
  CHECK(mask({.model = model.path()}) == 2);
  write("tokenizer_config.json", R"({"mask_token":"b"})");
  write("config.json", R"({"model_type":"llada","mask_token_id":3})");
  CHECK(mask() == 2);
}

TEST_CASE("a folder that names a tokenizer without a reader is refused, not read by another") {
  test::TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path() + "/" + name) << text;
  };
  const auto refused = [&](const TokenizerOptions& options = {}) -> std::string {
    const std::string message = test::message_of([&] { Tokenizer::open(folder.path(), options); });
    return message == "(nothing thrown)" ? "" : message;
  };
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n\xE4\xBB\x8A\xE5\xA4\xA9\n");
  CHECK(refused().empty());
  write("tokenizer_config.json", R"({"tokenizer_class":"BertJapaneseTokenizer"})");
  CHECK(refused().find("tokenizer_class 'BertJapaneseTokenizer' in tokenizer_config.json (words "
                       "by MeCab) has no reader here") != std::string::npos);
  CHECK(refused({.flavor = Flavor::kGoogle}).empty());
  write("tokenizer_config.json", R"({"tokenizer_class":"RobertaTokenizerFast"})");
  CHECK(refused().find("'RobertaTokenizerFast' in tokenizer_config.json does not read this file") !=
        std::string::npos);
  write("tokenizer_config.json", R"({"auto_map":{"AutoTokenizer":["own.Own",null]}})");
  CHECK(refused().find("code of its own ('own.Own')") != std::string::npos);
  write("tokenizer_config.json", "{}");
  write("config.json", R"({"model_type":"bert","tokenizer_class":"PhobertTokenizer"})");
  CHECK(refused().find("'PhobertTokenizer' in config.json has no reader") != std::string::npos);
  write("config.json", R"({"model_type":"unheard-of"})");
  CHECK(refused().find("model_type 'unheard-of' in config.json has no reader") !=
        std::string::npos);
  // Only jieba's dictionary finds words of two Chinese characters.
  write("config.json", R"({"model_type":"roformer"})");
  CHECK(refused().find("jieba") != std::string::npos);
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n\xE4\xBB\x8A\n");
  CHECK(refused().empty());
  // A type whose class reads other files.
  for (const char* type : {"roberta", "gpt2", "bart", "t5", "clip", "xlnet", "deberta-v2"}) {
    CAPTURE(type);
    write("config.json", fmt::format(R"({{"model_type":"{}"}})", type));
    CHECK(refused().find(fmt::format("model_type '{}' in config.json does not read this file, "
                                     "expected tokenizer.json or a tokenizer_class",
                                     type)) != std::string::npos);
    CHECK(refused({.flavor = Flavor::kGoogle}).empty());
  }
  // Of the model for which another tokenizer is given it says nothing.
  const TokenizerOptions of_model{.model = folder.path()};
  test::TempFolder apart;
  std::ofstream(apart.path() + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  CHECK(Tokenizer::open(apart.path(), of_model).parts().kind == "bert");
  write("tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer"})");
  CHECK(Tokenizer::open(folder.path()).parts().kind == "bert");
  write("tokenizer_config.json", "{}");
  // Masque's own types have no class, nor has Llama.
  for (const char* type : {"masque", "tta", "llama"}) {
    CAPTURE(type);
    write("config.json", fmt::format(R"({{"model_type":"{}"}})", type));
    CHECK(Tokenizer::open(folder.path()).parts().kind == "bert");
  }
  // tokenizer.json says all.
  write("config.json", R"({"model_type":"unheard-of"})");
  write("tokenizer.json", R"({"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}})");
  CHECK(refused().empty());
}

TEST_CASE("SentencePiece's decoding: the unknown piece has a surface, control pieces have none") {
  const std::string path = MASQUE_TEST_DATA "/text/classes/llama.model";
  const Tokenizer tokenizer = Tokenizer::open(path, {.flavor = Flavor::kSentencePiece});
  const auto id = [&](std::string_view token) { return tokenizer.find(token).value(); };
  // sentencepiece 0.2.3: SentencePieceProcessor.decode(…)
  const TokenId the = id("\u2581the");
  CHECK(tokenizer.decode({0, the}, false) == " \u2047  the");
  CHECK(tokenizer.decode({the, 0}, false) == "the \u2047 ");
  CHECK(tokenizer.decode({1, the, 2}, false) == "the");
  CHECK(tokenizer.decode({id("<0xC3>"), id("<0xA9>"), id("<0xFF>"), the}, false) ==
        "\u00E9\uFFFD the");
}

TEST_CASE("what a tokenizer's folder does not say the model's says") {
  test::TempFolder folder;
  const std::string alone = folder.path() + "/vocab.txt";
  const std::string model = folder.path() + "/model";
  const std::string changed = folder.path() + "/changed";
  std::filesystem::create_directory(model);
  std::filesystem::create_directory(changed);
  std::ofstream(alone) << "<s>\n<pad>\n</s>\n[UNK]\n<mask>\na\n";
  std::ofstream(model + "/config.json") << R"({"model_type": "mpnet"})";
  std::ofstream(changed + "/config.json")
      << R"({"model_type": "masque", "base_model_type": "mpnet"})";
  const auto ids = [](const std::string& path, const std::string& of) {
    return Tokenizer::open(path, {.model = of}).encode("a", {.special = true}).ids;
  };
  CHECK(ids(alone, "") == std::vector<TokenId>{5});
  CHECK(ids(alone, model) == std::vector<TokenId>{0, 5, 2});
  CHECK(ids(alone, model + "/model.safetensors") == std::vector<TokenId>{0, 5, 2});
  for (const std::string& written : {model, changed}) {
    std::filesystem::copy_file(alone, written + "/vocab.txt");
    CHECK(ids(written, "") == std::vector<TokenId>{0, 5, 2});
  }
  // A vocabulary of BERT's has no template but BERT's.
  std::ofstream(alone) << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  CHECK(ids(alone, model) == std::vector<TokenId>{2, 5, 3});
  std::filesystem::remove(model + "/vocab.txt");
  std::filesystem::copy_file(alone, model + "/vocab.txt");
  CHECK(ids(model, "") == std::vector<TokenId>{2, 5, 3});
}

/// A tokenizer of the word "a" with a normalizer and a decoder.
std::string with_parts(const std::string& normalizer, const std::string& decoder) {
  return R"({"added_tokens":[],"normalizer":)" + normalizer + R"(,"pre_tokenizer":null,)" +
         R"("post_processor":null,"decoder":)" + decoder +
         R"(,"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}})";
}

TEST_CASE("rules that double a text again and again end at a limit, not with the memory") {
  const auto steps = [](const std::string& list, const std::string& step) {
    std::string all = R"({"type":"Sequence",")" + list + "\":[" + step;
    for (int i = 1; i < 40; ++i) all += "," + step;
    return all + "]}";
  };
  const std::string doubles = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";
  const std::string bytes = R"({"type":"ByteLevel"})";
  for (const std::string& step : {doubles, bytes}) {
    const Tokenizer tokenizer(
        read_tokenizer_json(with_parts(steps("normalizers", step), "null"), "t"));
    CHECK(test::message_of([&] {
            tokenizer.encode(step == bytes ? "\u00E9" : "a", {});
          }).starts_with("the tokenizer's normalizer makes "));
  }
  const Tokenizer tokenizer(
      read_tokenizer_json(with_parts("null", steps("decoders", doubles)), "t"));
  CHECK(test::message_of([&] {
          tokenizer.decode({0, 0}, false);
        }).starts_with("the tokenizer's decoder makes "));
}

TEST_CASE("next to another config.json a vocabulary may need the name of its class") {
  test::TempFolder folder;
  const std::string path = folder.path() + "/vocab.txt";
  std::ofstream(path) << "<s>\n</s>\n[UNK]\n[CLS]\n[SEP]\na\n";
  const Tokenizer bert = Tokenizer::open(path);
  // Its vocabulary lacks [PAD] and [MASK], which the class would add.
  const TokenizerSettings named{
      {"tokenizer_class", "\"BertTokenizer\""}, {"pad_token", "null"}, {"mask_token", "null"}};
  CHECK(needed_settings(bert, R"({"model_type": "mpnet"})") == named);
  CHECK(needed_settings(bert, R"({"model_type": "masque", "base_model_type": "mpnet"})") == named);
  CHECK(needed_settings(bert, R"({"model_type": "roberta"})") == named);
  CHECK(needed_settings(bert, R"({"model_type": "llama"})").empty());
  std::ofstream(folder.path() + "/config.json") << R"({"model_type": "mpnet"})";
  const Tokenizer mpnet = Tokenizer::open(path);
  CHECK(needed_settings(mpnet, R"({"model_type": "bert"})").front() ==
        std::pair<std::string, std::string>("tokenizer_class", "\"MPNetTokenizer\""));
  CHECK(needed_settings(mpnet, R"({"model_type": "mpnet"})").empty());
  // A class that is named already counts, whatever the model.
  std::ofstream(folder.path() + "/tokenizer_config.json")
      << R"({"tokenizer_class": "BertTokenizer"})";
  CHECK(needed_settings(Tokenizer::open(path), R"({"model_type": "mpnet"})").empty());
  CHECK(needed_settings(Tokenizer::open("bytes"), R"({"model_type": "mpnet"})").empty());
}

TEST_CASE("next to another config.json the files of any vocabulary are read as before") {
  const std::string json =
      R"({"added_tokens":[{"id":0,"content":"[CLS]","special":true},{"id":1,"content":"[SEP]","special":true}],)"
      R"("normalizer":null,"pre_tokenizer":null,"decoder":null,"post_processor":null,)"
      R"("model":{"type":"BPE","vocab":{"[CLS]":0,"[SEP]":1,"a":2,"b":3},"merges":[]}})";
  const std::string pieces = R"({"<s>":0,"</s>":1,"a":2,"b":3})";
  struct Case {
    std::string name;
    std::vector<std::pair<std::string, std::string>> files;
  };
  const std::vector<Case> cases{
      {"tokenizer.json", {{"tokenizer.json", json}}},
      {"tokenizer.json of a class",
       {{"tokenizer.json", json}, {"config.json", R"({"model_type":"gpt2"})"}}},
      {"vocab.json", {{"vocab.json", pieces}, {"merges.txt", "#version: 0.2\n"}}},
      {"vocab.txt", {{"vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\n"}}},
      {"vocab.txt of a type",
       {{"vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\n"},
        {"config.json", R"({"model_type":"bert"})"}}}};
  for (const Case& one : cases) {
    test::TempFolder from;
    for (const auto& [name, text] : one.files) test::write_file(from / name, text);
    const Tokenizer before = Tokenizer::open(from.path());
    for (const char* type : {"bert", "gpt2", "roberta", "llama", "masque", "xlnet", "tta", "mpnet",
                             "deberta-v2", "gpt_neox", "electra", "roformer", "albert", "t5"}) {
      INFO(one.name, " next to a model of ", type);
      test::TempFolder to;
      for (const auto& [name, text] : one.files) test::write_file(to / name, text);
      const std::string config = fmt::format(R"({{"model_type":"{}"}})", type);
      test::write_file(to / "config.json", config);
      std::string settings = "{}";
      for (const auto& [name, value] : needed_settings(before, config))
        settings = set_json_member(settings, {name}, value);
      test::write_file(to / "tokenizer_config.json", settings);
      const Tokenizer after = Tokenizer::open(to.path());
      CHECK(after.size() == before.size());
      CHECK(read_alike(after, before));
    }
  }
}

TEST_CASE("unsupported parts are refused by name") {
  const auto refuse = [](const std::string& json) -> std::string {
    try {
      read_tokenizer_json(json, "t");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string model = R"("model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"})";
  CHECK(refuse("{" + model + "}") == "accepted");
  CHECK(refuse(R"({"version":"2.0",)" + model + "}") == "t: version '2.0', expected '1.0'");
  CHECK(refuse("{" + model + R"(,"decoder":{"type":"RNN"}})").find("decoder 'RNN'") !=
        std::string::npos);
  CHECK(refuse("{" + model + R"(,"post_processor":{"type":"X"}})").find("post-processor 'X'") !=
        std::string::npos);
  CHECK(refuse("{" + model + R"(,"normalizer":{"type":"Foo"}})").find("Foo") != std::string::npos);
  CHECK(refuse(R"({"model":{"type":"Bar"}})").find("Bar") != std::string::npos);
  CHECK(refuse("{}") == "t: byte 0: no 'model', expected an object");
  CHECK(refuse("[]").find("no object") != std::string::npos);
}

TEST_CASE("training joins the most frequent pairs, ties by id") {
  std::vector<CountedWord> words{{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  TrainOptions options;
  options.size = 40;
  const auto files = train_tokenizer(words, options);
  REQUIRE(files.size() == 3);
  CHECK(files[0].first == "vocab.txt");
  // es (9), est (9), lo (7), low (7), …
  CHECK(files[0].second.find("##es\n##est\nlo\nlow\n") != std::string::npos);
  const TokenizerParts parts = read_tokenizer_json(files[2].second, "t");
  CHECK(parts.steps.model->find("##est").has_value());
}

TEST_CASE("rare words are forgotten when there are too many") {
  WordCounts counts(3);
  counts.add("a", 5);
  counts.add("b", 1);
  counts.add("c", 2);
  counts.add("d", 1);
  counts.prune();
  CHECK(counts.size() == 2);
  CHECK(counts.forgotten() == 1);
  CHECK(counts.sorted()[0].text == "a");
}

}  // namespace
}  // namespace masque::text
