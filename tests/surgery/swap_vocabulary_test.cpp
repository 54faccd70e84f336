#include "surgery/vocabulary/swap_vocabulary.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/file.hpp"
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
