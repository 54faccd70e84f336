// Settings of the files next to a vocabulary and next to a tokenizer.json; tekken.json and
// tiktoken's files that are wrong.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {
namespace {

using Ids = std::vector<TokenId>;

/// The warnings of the folder's tokenizer, one after the other.
std::string warnings_of(const test::TempFolder& folder) {
  std::string out;
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  for (const std::string& warning : tokenizer.warnings()) out += warning + "\n";
  return out;
}

TEST_CASE("a setting that is not known is named") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  test::write_file(folder / "tokenizer_config.json",
                   R"({"do_lower_case":true,"model_max_length":512,"extra_ids":3})");
  CHECK(warnings_of(folder).empty());
  test::write_file(folder / "tokenizer_config.json", R"({"split_by_moon":true,"phase":1})");
  CHECK(warnings_of(folder) ==
        "settings of tokenizer_config.json that are not known here: 'split_by_moon', 'phase'\n");
  test::write_file(folder / "special_tokens_map.json", R"({"unk_token":"[UNK]","moon":1})");
  const std::string both =
      "settings of tokenizer_config.json that are not known here: 'split_by_moon', 'phase'\n"
      "settings of special_tokens_map.json that are not known here: 'moon'\n";
  CHECK(warnings_of(folder) == both);
  test::write_file(folder / "tokenizer.json",
                   R"({"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}})");
  CHECK(warnings_of(folder) == both);
}

TEST_CASE("special tokens are text where tokenizer_config.json says so") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  test::write_file(folder / "tokenizer_config.json", R"({"split_special_tokens":true})");
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  CHECK(tokenizer.encode("a [MASK]", {.special = true}).ids == Ids{2, 5, 1, 1, 1, 3});
  CHECK(tokenizer.roles().mask == 4);
}

TEST_CASE("a token that has a name is special, whatever added_tokens_decoder says") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  const std::string numbered = R"("added_tokens_decoder":{"6":{"content":"<n>","special":false}})";
  const auto ids = [&](const std::string& members) {
    test::write_file(folder / "tokenizer_config.json",
                     R"({"split_special_tokens":true,)" + members + "}");
    return Tokenizer::open(folder.path()).encode("a<n>", {}).ids;
  };
  // As BertTokenizer of transformers 5.24.
  CHECK(ids(numbered) == Ids{5, 6});
  for (const char* named : {R"("mask_token":"<n>")", R"("extra_special_tokens":{"image":"<n>"})",
                            R"("image_token":"<n>")"}) {
    CAPTURE(named);
    CHECK(ids(numbered + "," + named) == Ids{5, 1, 1, 1});
  }
  // A list gives no names; in added_tokens.json tokens have no flags.
  CHECK(ids(numbered + R"(,"extra_special_tokens":["<n>"])") == Ids{5, 6});
  test::write_file(folder / "added_tokens.json", R"({"<n>":6})");
  CHECK(ids(R"("do_lower_case":true)") == Ids{5, 6});
  CHECK(ids(R"("extra_special_tokens":["<n>"])") == Ids{5, 1, 1, 1});
}

TEST_CASE("tokenizers of DPR lower the case of every text") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nA\n");
  const auto ids = [&](const std::string& members) {
    test::write_file(folder / "tokenizer_config.json", "{" + members + "}");
    return Tokenizer::open(folder.path()).encode("A", {}).ids;
  };
  // As transformers 5.24, whose classes do not hand do_lower_case on.
  CHECK(ids(R"("do_lower_case":false)") == Ids{6});
  for (const char* name : {"DPRQuestionEncoderTokenizer", "DPRContextEncoderTokenizerFast"}) {
    CAPTURE(name);
    const std::string named = R"("tokenizer_class":")" + std::string(name) + "\"";
    CHECK(ids(named) == Ids{5});
    CHECK(warnings_of(folder).empty());
    CHECK(ids(named + R"(,"do_lower_case":false)") == Ids{5});
    CHECK(warnings_of(folder) ==
          "do_lower_case false has no effect: tokenizer_class '" + std::string(name) +
              "' in tokenizer_config.json lowers the case of every text, as in transformers\n");
  }
  test::write_file(folder / "config.json", R"({"model_type":"dpr"})");
  CHECK(ids(R"("do_lower_case":false)") == Ids{5});
  CHECK(ids(R"("tokenizer_class":"BertTokenizer","do_lower_case":false)") == Ids{6});
}

TEST_CASE("steps of a tokenizer.json that its class does not have in transformers are named") {
  test::TempFolder folder;
  const auto warnings = [&](const std::string& steps) {
    test::write_file(
        folder / "tokenizer.json",
        R"({"model":{"type":"BPE","vocab":{"a":0,"<s>":1,"</s>":2,"<unk>":3},"merges":[]},)" +
            steps + "}");
    return warnings_of(folder);
  };
  test::write_file(
      folder / "tokenizer_config.json",
      R"({"tokenizer_class":"RobertaTokenizer","cls_token":"<s>","sep_token":"</s>"})");
  const std::string bytes =
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  CHECK(warnings(bytes).empty());
  CHECK(
      warnings(bytes + R"(,"normalizer":{"type":"NFC"})") ==
      "the normalizer of tokenizer.json (NFC) counts, but transformers 5 builds another (none) for "
      "tokenizer_class 'RobertaTokenizer' in tokenizer_config.json: ids of some texts differ\n");
  CHECK(warnings(
            R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})")
            .starts_with("the pre_tokenizer of tokenizer.json (ByteLevel add_prefix_space true) "
                         "counts, but"));
  test::write_file(folder / "tokenizer_config.json",
                   R"({"tokenizer_class":"PreTrainedTokenizerFast"})");
  CHECK(warnings(bytes + R"(,"normalizer":{"type":"NFC"})").empty());
}

TEST_CASE("options of a tokenizer.json that its class has otherwise in transformers are named") {
  test::TempFolder folder;
  const auto warnings = [&](const std::string& settings, const std::string& json) {
    test::write_file(folder / "tokenizer_config.json", settings);
    test::write_file(folder / "tokenizer.json", json);
    return warnings_of(folder);
  };
  // bert-base-cased's, next to files that do not say so: transformers 5.24 lowercases.
  const auto bert = [](const std::string& normalizer, const std::string& unknown = "[UNK]") {
    return R"({"model":{"type":"WordPiece","unk_token":")" + unknown +
           R"(","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":)"
           R"({"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"<unk>":5}},)"
           R"("pre_tokenizer":{"type":"BertPreTokenizer"},"normalizer":{"type":"BertNormalizer",)"
           R"("clean_text":true,)" +
           normalizer + "}}";
  };
  const std::string cased = R"("handle_chinese_chars":true,"strip_accents":null,"lowercase":false)";
  const std::string plain = R"({"tokenizer_class":"BertTokenizer"})";
  CHECK(warnings(plain, bert(cased)) ==
        "the normalizer of tokenizer.json (BertNormalizer lowercase false strip_accents false) "
        "counts, but transformers 5 builds another (BertNormalizer lowercase true strip_accents "
        "true) for tokenizer_class 'BertTokenizer' in tokenizer_config.json: ids of some texts "
        "differ\n");
  CHECK(warnings(R"({"tokenizer_class":"BertTokenizer","do_lower_case":false})", bert(cased))
            .empty());
  CHECK(warnings(R"({"tokenizer_class":"PreTrainedTokenizerFast"})", bert(cased)).empty());
  test::write_file(folder / "config.json", R"({"model_type":"bert"})");
  CHECK(warnings("{}", bert(cased)).find("for model_type 'bert' in config.json") !=
        std::string::npos);
  const std::string chinese =
      R"("handle_chinese_chars":false,"strip_accents":true,"lowercase":true)";
  CHECK(warnings(plain, bert(chinese))
            .starts_with("the normalizer of tokenizer.json (BertNormalizer handle_chinese_chars "
                         "false) counts, but"));
  const std::string usual = R"("handle_chinese_chars":true,"strip_accents":null,"lowercase":true)";
  CHECK(warnings(plain, bert(usual)).empty());
  CHECK(warnings(plain, bert(usual, "<unk>"))
            .starts_with("the unk_token of tokenizer.json ('<unk>') counts, but transformers 5 "
                         "takes '[UNK]' for tokenizer_class 'BertTokenizer'"));
  // Tokens that the class adds.
  const std::string added =
      R"("added_tokens":[{"id":0,"content":"<s>","special":true},{"id":1,"content":"</s>","special":true}],)";
  const std::string llama =
      "{" + added +
      R"("model":{"type":"BPE","vocab":{"<s>":0,"</s>":1,"<unk>":2},"merges":[]},)"
      R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}})";
  CHECK(warnings(R"({"tokenizer_class":"LlamaTokenizer"})", llama) ==
        "transformers 5 adds special tokens for tokenizer_class 'LlamaTokenizer' in "
        "tokenizer_config.json that tokenizer.json does not have: '<unk>': ids of texts with them "
        "differ\n");
  CHECK(warnings(R"({"tokenizer_class":"LlamaTokenizer","unk_token":"<unk>"})", llama).empty());
  const std::string t5 =
      R"({"model":{"type":"Unigram","unk_id":2,"vocab":[["<pad>",0],["</s>",0],["<unk>",0]]},)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)"
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}]}})";
  CHECK(warnings(R"({"tokenizer_class":"T5Tokenizer"})", t5).find("'<extra_id_99>' and 99 more") !=
        std::string::npos);
  CHECK(warnings(R"({"tokenizer_class":"T5Tokenizer","extra_ids":0})", t5).empty());
}

TEST_CASE("a token of the template that the vocabulary lacks, or numbers otherwise, is named") {
  test::TempFolder folder;
  const auto open = [&](const std::string& settings, const std::string& json) {
    test::write_file(folder / "tokenizer_config.json", settings);
    test::write_file(folder / "tokenizer.json", json);
    return warnings_of(folder);
  };
  const auto nllb = [](const std::string& languages) {
    return R"({"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"merges":[],"vocab":)"
           R"({"<s>":0,"<pad>":1,"</s>":2,"<unk>":3,"▁":4)" +
           languages + R"(}},"pre_tokenizer":{"type":"Metaspace","replacement":"▁",)" +
           R"("prepend_scheme":"always","split":true}})";
  };
  // transformers 5.24 adds 202 languages, and begins each text with the id of a new one.
  const std::string named = R"({"tokenizer_class":"NllbTokenizer")";
  CHECK(test::message_of([&] { open(named + "}", nllb("")); }) ==
        (folder / "tokenizer.json") +
            ": no token 'eng_Latn', which the template of tokenizer_class 'NllbTokenizer' in "
            "tokenizer_config.json needs and transformers 5 adds with a new id: expected a "
            "vocabulary that has it");
  CHECK(open(named + "}", nllb(R"(,"eng_Latn":5)"))
            .starts_with("transformers 5 adds special tokens for tokenizer_class 'NllbTokenizer' "
                         "in tokenizer_config.json that tokenizer.json does not have: 'ace_Arab' "
                         "and 201 more"));
  // A list replaces the languages: then the unknown token stands for the language.
  CHECK(open(named + R"(,"extra_special_tokens":[]})", nllb("")) ==
        "the template puts the id 3 ('<unk>') for 'eng_Latn', which the vocabulary lacks: as in "
        "transformers, 3 counts\n");
  CHECK(Tokenizer::open(folder.path()).encode("", {.special = true}).ids == Ids{3, 2});
  const auto of_file = [](const char* id) {
    return R"({"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"[CLS]":1}},)"
           R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":)"
           R"({"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],)"
           R"("special_tokens":{"[CLS]":{"id":"[CLS]","tokens":["[CLS]"],"ids":[)" +
           std::string(id) + "]}}}}";
  };
  CHECK(open("{}", of_file("1")).empty());
  CHECK(open("{}", of_file("0")) ==
        "the template puts the id 0 ('a') for '[CLS]', which has the id 1 in the vocabulary: as in "
        "transformers, 0 counts\n");
  CHECK(open("{}", of_file("101")) ==
        "the template puts the id 101 (of no token) for '[CLS]', which has the id 1 in the "
        "vocabulary: as in transformers, 101 counts\n");
}

TEST_CASE("clean_up_tokenization_spaces is of decoded text, but not of byte-pair encodings") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ndo\nnot\n'\nt\n.\n");
  const auto decoded = [&](const std::string& members) {
    test::write_file(folder / "tokenizer_config.json", "{" + members + "}");
    return Tokenizer::open(folder.path()).decode({5, 6, 5, 7, 8, 9}, false);
  };
  CHECK(decoded("") == "do not do ' t.");
  CHECK(decoded(R"("clean_up_tokenization_spaces":true)") == "do not do't.");
  test::write_file(
      folder / "tokenizer.json",
      R"({"model":{"type":"BPE","vocab":{"a":0,"'":1},"merges":[]},"decoder":{"type":"Replace","pattern":{"String":"a"},"content":" "}})");
  const auto from_json = [&](const std::string& members) {
    test::write_file(folder / "tokenizer_config.json",
                     R"({"clean_up_tokenization_spaces":true)" + members + "}");
    return Tokenizer::open(folder.path()).decode({0, 1, 0}, false);
  };
  CHECK(from_json("") == " ' ");
  CHECK(from_json(
            R"(,"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output":true)") ==
        "'");
}

TEST_CASE("CLIP's class decodes a tokenizer.json as it does vocab.json") {
  test::TempFolder folder;
  test::write_file(
      folder / "tokenizer.json",
      R"({"model":{"type":"BPE","vocab":{"a":0,"b</w>":1,"<|startoftext|>":2,"<|endoftext|>":3},"merges":[],"end_of_word_suffix":"</w>"},"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}})");
  CHECK(Tokenizer::open(folder.path()).decode({0, 1, 1}, false) == "ab</w>b</w>");
  test::write_file(folder / "tokenizer_config.json", R"({"tokenizer_class":"CLIPTokenizer"})");
  CHECK(Tokenizer::open(folder.path()).decode({0, 1, 1}, false) == "ab b");
}

TEST_CASE("flags of a special token's object count, where no list has them") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  test::write_file(folder / "special_tokens_map.json",
                   R"({"mask_token":{"content":"[MASK]","lstrip":true}})");
  const auto begin = [&] {
    return Tokenizer::open(folder.path()).encode("a  [MASK]", {}).offsets.at(1).begin;
  };
  CHECK(begin() == 1);
  test::write_file(folder / "tokenizer_config.json",
                   R"({"added_tokens_decoder":{"4":{"content":"[MASK]","special":true}}})");
  CHECK(begin() == 3);
}

TEST_CASE("the files next to tokenizer.json add tokens, what contradicts it is refused") {
  test::TempFolder folder;
  test::write_file(
      folder / "tokenizer.json",
      R"({"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":false},"pre_tokenizer":{"type":"BertPreTokenizer"},"added_tokens":[{"id":1,"content":"[UNK]","special":true}],"model":{"type":"WordPiece","vocab":{"a":0,"[UNK]":1},"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100}})");
  CHECK(warnings_of(folder).empty());
  const auto configure = [&](const std::string& members) {
    test::write_file(folder / "tokenizer_config.json",
                     R"({"tokenizer_class":"BertTokenizer",)" + members + "}");
  };
  const auto ids = [&](const std::string& text) {
    return Tokenizer::open(folder.path()).encode(text, {.special_in_text = true}).ids;
  };
  const auto refused = [&](const std::string& members) {
    configure(members);
    CHECK_THROWS_AS(Tokenizer::open(folder.path()), InputError);
  };
  // As BertTokenizer of transformers 5.24.
  configure(R"("do_lower_case":false,"mask_token":"[M]","additional_special_tokens":["<new>"])");
  CHECK(ids("A <new>[M]a") == Ids{1, 6, 5, 0});
  configure(R"("cls_token":"a","sep_token":"[S]")");
  CHECK(Tokenizer::open(folder.path()).encode("b", {.special = true}).ids == Ids{0, 1, 2});
  refused(R"("do_lower_case":true)");
  refused(R"("strip_accents":true)");
  refused(R"("unk_token":"a")");
  refused(R"("added_tokens_decoder":{"0":{"content":"[UNK]"}})");
  test::write_file(folder / "added_tokens.json", R"({"b":1})");
  refused(R"("do_lower_case":false)");
}

TEST_CASE("Mistral's wrong expression is named") {
  test::TempFolder folder;
  const auto write = [&](int tokens) {
    std::string json =
        R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\p{L}+"},"behavior":"Isolated","invert":false},"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0)";
    for (int i = 1; i < tokens; ++i) json += ",\"" + std::to_string(i) + "\":" + std::to_string(i);
    test::write_file(folder / "tokenizer.json", json + "}}}");
  };
  const auto is_warned = [&] {
    return test::contains(warnings_of(folder), "known to be wrong for Mistral's models");
  };
  write(100'001);
  CHECK_FALSE(is_warned());
  test::write_file(folder / "config.json",
                   R"({"model_type":"mistral3","transformers_version":"4.57.1"})");
  CHECK(is_warned());
  test::write_file(folder / "tokenizer_config.json", R"({"fix_mistral_regex":false})");
  CHECK_FALSE(is_warned());
  test::write_file(folder / "tokenizer_config.json", R"({"fix_mistral_regex":true})");
  CHECK(test::contains(test::message_of([&] { Tokenizer::open(folder.path()); }),
                       "fix_mistral_regex is set"));
  test::write_file(folder / "tokenizer_config.json", "{}");
  test::write_file(folder / "config.json", R"({"model_type":"llama"})");
  CHECK_FALSE(is_warned());
  test::write_file(folder / "config.json",
                   R"({"model_type":"mistral","transformers_version":"5.0.0"})");
  CHECK_FALSE(is_warned());
  write(100'000);
  test::write_file(folder / "config.json", R"({"model_type":"mistral"})");
  CHECK_FALSE(is_warned());
}

TEST_CASE("extra_ids of T5 is a number") {
  test::TempFolder folder;
  test::write_file(folder / "spiece.model",
                   InputFile::open(MASQUE_TEST_DATA "/text/classes/t5.model").read_all(1U << 20));
  test::write_file(folder / "tokenizer_config.json",
                   R"({"tokenizer_class":"T5Tokenizer","extra_ids":-1})");
  CHECK(test::contains(test::message_of([&] { Tokenizer::open(folder.path()); }),
                       "extra_ids: found -1, expected 0 to 65536"));
}

TEST_CASE("a tekken.json or a file of tiktoken's that is wrong is refused") {
  test::TempFolder folder;
  const auto refused = [&](const std::string& name, const std::string& text) {
    test::write_file(folder / name, text);
    return test::message_of([&] { Tokenizer::open(folder / name); });
  };
  CHECK(test::contains(refused("tekken.json", "{}"), "no 'config'"));
  CHECK(test::contains(refused("tekken.json", R"({"config":{"pattern":"a"},"vocab":[]})"),
                       "no 'special_tokens' (an old tekken.json)"));
  CHECK(test::contains(
      refused("tekken.json",
              R"({"config":{"pattern":"a"},"special_tokens":[{"rank":1,"token_str":"b"}]})"),
      "no special token of rank 0"));
  CHECK(test::contains(
      refused("tekken.json",
              R"({"config":{"pattern":"a"},"special_tokens":[],"vocab":[{"token_bytes":"?"}]})"),
      "'token_bytes' is not base64"));
  CHECK(test::contains(
      refused("tekken.json",
              R"({"config":{"pattern":"a"},"special_tokens":[],"vocab":[{"token_bytes":"YQ=="}]})"),
      "no token for byte 0x00, expected all 256"));
  CHECK(test::contains(refused("own.tiktoken", "YQ== 0\n"), "not a known encoding"));
  CHECK(test::contains(refused("tiktoken.model", "YQ== 0\nYQ== 0\n"),
                       "line 2: expected base64, a space and a rank from 1"));
  CHECK(
      test::contains(refused("tiktoken.model", "YQ== 0\nYQ== 1\n"), "token 1 ('a') occurs twice"));
}

}  // namespace
}  // namespace masque::text
