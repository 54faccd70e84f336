#include "surgery/vocabulary/swap_vocabulary.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "support/message.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

const std::string kOld = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nking\n##s\nthe\n##n\n";

VocabularyReport swap(const TempFolder& folder, const std::string& path,
                      std::uint64_t multiple = 1) {
  const NewTokenizer tokenizer(path);
  VocabularyRequest request;
  request.means = [&](const RowInitContext& context) { return tokenizer.pieces(context); };
  request.change_files = [&](CheckpointEdit& edit, const TokenNames& names,
                             const VocabularyChange&) { return tokenizer.write(edit, names); };
  request.other_tokenizer = true;
  request.roles = [&](std::string_view name) { return tokenizer.id_of_role(name); };
  return change_vocabulary(
      folder / "in", folder / "out",
      [&](const VocabularyState& state) { return tokenizer.plan(state, multiple); }, request);
}

void write_old(const TempFolder& folder) {
  ExampleBert bert;
  bert.vocabulary = kOld;
  bert.config = "{\"model_type\": \"bert\", \"vocab_size\": 11, \"pad_token_id\": 0}";
  bert.write(folder);
}

TEST_CASE("rows by spelling, then means of the old pieces, then the mean of all") {
  const TempFolder folder;
  write_old(folder);
  write_file(folder / "new.txt", "the\n[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nkings\nxyz\n##s\n");
  swap(folder, folder / "new.txt", 4);
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  const auto before = values_of(in, kTable);
  const auto after = values_of(out, kTable);
  REQUIRE(after.size() == 12 * 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(after[i] == before[7 * 5 + i]);
    CHECK(after[5 + i] == before[i]);
    CHECK(after[6 * 5 + i] == doctest::Approx((before[5 * 5 + i] + before[6 * 5 + i]) / 2));
    double mean = 0;
    for (std::size_t row = 0; row < 9; ++row) mean += before[row * 5 + i] / 9;
    CHECK(after[7 * 5 + i] == doctest::Approx(mean));
    CHECK(after[8 * 5 + i] == before[6 * 5 + i]);
    CHECK(after[9 * 5 + i] == doctest::Approx(mean));
  }
  const std::string config = InputFile::open(folder / "out/config.json").read_all(1000);
  CHECK(contains(config, "\"vocab_size\": 12"));
  CHECK(contains(config, "\"pad_token_id\": 1"));
  CHECK(InputFile::open(folder / "out/vocab.txt").read_all(1000) ==
        InputFile::open(folder / "new.txt").read_all(1000));
}

TEST_CASE("a folder with another kind of tokenizer: roles and texts carry over") {
  const TempFolder folder;
  write_old(folder);
  write_file(
      folder / "new/vocab.json",
      R"({"<s>":0,"<pad>":1,"</s>":2,"<unk>":3,"<mask>":4,"\u0120":5,"t":6,"h":7,"e":8,"\u0120t":9,"he":10,"\u0120the":11,"k":12,"i":13,"n":14,"g":15,"in":16})");
  write_file(folder / "new/merges.txt", "#version: 0.2\n\u0120 t\nh e\n\u0120t he\ni n\n");
  write_file(
      folder / "new/tokenizer_config.json",
      R"({"tokenizer_class":"RobertaTokenizer","pad_token":"<pad>","cls_token":"<s>","sep_token":"</s>","mask_token":"<mask>","unk_token":"<unk>"})");
  const VocabularyReport report = swap(folder, folder / "new");
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  const auto before = values_of(in, kTable);
  const auto after = values_of(out, kTable);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(after[i] == before[2 * 5 + i]);           // <s> is [CLS]
    CHECK(after[4 * 5 + i] == before[4 * 5 + i]);   // <mask> is [MASK]
    CHECK(after[11 * 5 + i] == before[7 * 5 + i]);  // Ġthe is the
  }
  CHECK_FALSE(exists(folder / "out/vocab.txt"));
  CHECK(exists(folder / "out/merges.txt"));
}

/// A vocabulary as Llama's, whose texts begin with ▁, and one as GPT-2's: the same tokens.
const std::vector<std::string> kLlamaTokens{"<unk>", "<s>", "</s>", "▁", "t",      "h",     "e",
                                            "th",    "the", "▁the", "é", "<0x0A>", "<0xC3>"};

std::string llama_tokenizer() {
  std::string vocab;
  for (std::size_t i = 0; i < kLlamaTokens.size(); ++i)
    vocab += (i == 0 ? "\"" : ",\"") + kLlamaTokens[i] + "\":" + std::to_string(i);
  return R"({"version":"1.0","added_tokens":[],"normalizer":{"type":"Sequence","normalizers":[)"
         R"({"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},)"
         R"("pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"BPE",)"
         R"("unk_token":"<unk>","byte_fallback":true,"vocab":{)" +
         vocab + R"(},"merges":["t h","th e","▁ the"]}})";
}

TEST_CASE("tokens that write the same get each other's rows, whatever their spelling") {
  const TempFolder folder;
  ExampleBert bert;
  bert.rows = kLlamaTokens.size();
  bert.vocabulary.clear();
  bert.config = R"({"model_type": "bert", "bos_token_id": 1, "eos_token_id": 2})";
  bert.write(folder);
  write_file(folder / "in/tokenizer.json", llama_tokenizer());
  write_file(folder / "in/tokenizer_config.json",
             R"({"bos_token":"<s>","eos_token":"</s>","unk_token":"<unk>"})");
  write_file(folder / "new/vocab.json",
             R"({"\u0120":0,"t":1,"h":2,"e":3,"th":4,"the":5,"\u0120the":6,"\u010a":7,"\u00c3":8,)"
             R"("\u00a9":9,"\u00c3\u00a9":10,"\u0120th":11,"<|endoftext|>":12})");
  write_file(folder / "new/merges.txt", "#version: 0.2\nt h\nth e\nĠ the\nÃ ©\nĠ th\n");
  write_file(
      folder / "new/tokenizer_config.json",
      R"({"tokenizer_class":"GPT2Tokenizer","bos_token":"<|endoftext|>","eos_token":"<|endoftext|>"})");
  swap(folder, folder / "new");
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  const auto before = values_of(in, kTable);
  const auto after = values_of(out, kTable);
  const std::vector<std::string> expected{"▁",    "t",      "h",      "e", "th", "the",
                                          "▁the", "<0x0A>", "<0xC3>", "",  "é",  ""};
  for (std::size_t id = 0; id < expected.size(); ++id) {
    if (expected[id].empty()) continue;
    const auto row = static_cast<std::size_t>(std::ranges::find(kLlamaTokens, expected[id]) -
                                              kLlamaTokens.begin());
    CAPTURE(expected[id]);
    for (std::size_t i = 0; i < 5; ++i) CHECK(after[id * 5 + i] == before[row * 5 + i]);
  }
  for (std::size_t i = 0; i < 5; ++i) {
    // " th" is ▁ and th; the one special token begins texts.
    CHECK(after[11 * 5 + i] == doctest::Approx((before[3 * 5 + i] + before[7 * 5 + i]) / 2));
    CHECK(after[12 * 5 + i] == before[1 * 5 + i]);
  }
  const std::string config = InputFile::open(folder / "out/config.json").read_all(1000);
  CHECK(contains(config, "\"bos_token_id\": 12, \"eos_token_id\": 12"));
}

TEST_CASE("WordPiece and byte-level: continuations and punctuation") {
  const TempFolder folder;
  ExampleBert bert;
  bert.vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n,\n##,\ns\n";
  bert.write(folder);
  write_file(folder / "new/vocab.json",
             R"({"\u0120":0,"t":1,"h":2,"e":3,"s":4,",":5,"\u0120the":6,"\u0120s":7,"\u0120,":8})");
  write_file(folder / "new/merges.txt", "#version: 0.2\n");
  write_file(folder / "new/tokenizer_config.json", R"({"tokenizer_class":"GPT2Tokenizer"})");
  swap(folder, folder / "new");
  const auto before = values_of(store::open_checkpoint(folder / "in"), kTable);
  const auto after = values_of(store::open_checkpoint(folder / "out"), kTable);
  for (const auto& [id, row] :
       std::vector<std::pair<std::size_t, std::size_t>>{{4, 6}, {5, 7}, {6, 5}, {7, 9}, {8, 7}}) {
    CAPTURE(id);
    for (std::size_t i = 0; i < 5; ++i) CHECK(after[id * 5 + i] == before[row * 5 + i]);
  }
}

TEST_CASE("a tokenizer_config.json without a class gets that of the new model") {
  const auto config_of = [](const std::string& model, const std::string& config) {
    const TempFolder folder;
    write_old(folder);
    write_file(folder / "new/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n");
    write_file(folder / "new/tokenizer_config.json", config);
    if (!model.empty()) write_file(folder / "new/config.json", model);
    swap(folder, folder / "new");
    return InputFile::open(folder / "out/tokenizer_config.json").read_all(1000);
  };
  const std::string plain = R"({"do_lower_case": false})";
  const auto with = [](const std::string& name) {
    return R"({"do_lower_case": false,"tokenizer_class": ")" + name + "\"}";
  };
  CHECK(config_of("", plain) == with("BertTokenizer"));
  CHECK(config_of(R"({"model_type": "electra"})", plain) == with("ElectraTokenizer"));
  CHECK(config_of(R"({"model_type": "bert", "tokenizer_class": "MPNetTokenizer"})", plain) ==
        with("MPNetTokenizer"));
  // A name without a reader is refused.
  CHECK_THROWS_AS(config_of(R"({"model_type": "unheard-of"})", plain), InputError);
  CHECK_THROWS_AS(
      config_of(R"({"model_type": "bert", "tokenizer_class": "BertJapaneseTokenizer"})", plain),
      InputError);
  CHECK(config_of(R"({"model_type": "electra"})", with("MPNetTokenizer")) ==
        with("MPNetTokenizer"));
}

TEST_CASE("without a known class a note says so") {
  const TempFolder folder;
  write_old(folder);
  write_file(folder / "new/vocab.json", R"({"<pad>":0,"<unk>":1,"t":2})");
  write_file(folder / "new/merges.txt", "#version: 0.2\n");
  write_file(folder / "new/tokenizer_config.json", "{}");
  const VocabularyReport report = swap(folder, folder / "new");
  CHECK(std::ranges::any_of(report.notes, [](const std::string& note) {
    return contains(note,
                    "has no tokenizer_class: transformers uses the default of the model type");
  }));
  CHECK(InputFile::open(folder / "out/tokenizer_config.json").read_all(1000) == "{}");
}

TEST_CASE("swap-vocab refuses what would not fit together") {
  const TempFolder folder;
  write_old(folder);
  const auto error = [&](const std::string& name, const std::string& text) {
    write_file(folder / name, text);
    return message_of([&] { swap(folder, folder / name); });
  };
  CHECK(contains(error("a.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n"), "no token '[MASK]'"));
  CHECK(contains(error("a.bin", "x"), "expected"));
  CHECK(contains(error("a.json", "{}"), "a.json"));
}

}  // namespace
}  // namespace masque::surgery
