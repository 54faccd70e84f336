#include "surgery/vocabulary/change_vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/example.hpp"
#include "surgery/rows/row_init.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kBias = "cls.predictions.bias";
const std::string kDecoder = "cls.predictions.decoder.weight";
const std::string kDecoderBias = "cls.predictions.decoder.bias";

VocabularyRequest change_request(const std::string& init = "mean") {
  VocabularyRequest request;
  request.init = init;
  request.verify = true;
  request.write.threads = 2;
  return request;
}

VocabularyPlan adds(const std::vector<std::string>& tokens) {
  return [tokens](const VocabularyState& state) { return plan_add(state, tokens, false, 1); };
}

VocabularyPlan removes(const std::vector<std::string>& tokens) {
  return [tokens](const VocabularyState& state) { return plan_remove(state, {tokens}); };
}

VocabularyPlan permutes(const std::vector<std::string>& order) {
  return [order](const VocabularyState& state) { return plan_permute(state, {order}); };
}

VocabularyPlan resizes(std::uint64_t rows) {
  return [rows](const VocabularyState& state) { return plan_resize(state, rows, 1); };
}

bool noted(const VocabularyReport& report, const std::string& part) {
  return std::ranges::any_of(
      report.notes, [&](const std::string& note) { return contains(spell_fields(note), part); });
}

std::string bytes_of(const store::Checkpoint& checkpoint, const std::string& name) {
  const store::TensorInfo& tensor = checkpoint.get(name);
  std::string bytes(tensor.bytes(), '\0');
  checkpoint.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Row `row` of a tensor, as it is stored.
std::string row_bytes(const store::Checkpoint& checkpoint, const std::string& name,
                      std::uint64_t row) {
  const std::string bytes = bytes_of(checkpoint, name);
  const std::size_t size = bytes.size() / checkpoint.get(name).shape[0];
  return bytes.substr(row * size, size);
}

TEST_CASE("old rows keep their bits in every type, new ones are rounded once") {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    const TempFolder folder;
    ExampleBert bert;
    bert.dtype = dtype;
    bert.write(folder);
    const auto report = change_vocabulary(folder / "in", folder / "out",
                                          adds({"king", "queen", "court"}), change_request());
    const store::Checkpoint in = store::open_checkpoint(folder / "in");
    const store::Checkpoint out = store::open_checkpoint(folder / "out");
    REQUIRE(out.get(kTable).shape == Shape{12, 5});
    REQUIRE(out.get(kBias).shape == Shape{12});
    for (const std::string& name : {kTable, kBias}) {
      for (std::uint64_t row = 0; row < 9; ++row)
        CHECK(row_bytes(out, name, row) == row_bytes(in, name, row));
      const auto old = values_of(in, name);
      const std::size_t width = old.size() / 11;
      std::vector<double> mean(width);
      for (std::size_t i = 0; i < 9 * width; ++i) mean[i % width] += old[i] / 9;
      std::vector<std::byte> rounded(width * dtype_bits(dtype) / 8);
      from_double(dtype, mean, rounded);
      std::vector<double> expected(width);
      to_double(dtype, rounded, expected);
      const auto found = values_of(out, name);
      for (std::size_t i = 9 * width; i < found.size(); ++i)
        CHECK(found[i] == doctest::Approx(expected[i % width]).epsilon(1e-14));
    }
    CHECK(values_of(out, "other") == values_of(in, "other"));
    CHECK(report.changed_tensors == std::vector<std::string>{kTable, kBias});
    REQUIRE(report.verified);
    CHECK(report.verified->tensors_unchanged == 1);
    CHECK(report.verified->digest_before == report.verified->digest_after);
  }
}

TEST_CASE("the report, the config and the vocabulary follow") {
  const TempFolder folder;
  ExampleBert bert;
  bert.config =
      "{\n  \"model_type\": \"bert\",\n  \"vocab_size\": 11,\n  \"pad_token_id\": 0,\n"
      "  \"bos_token_id\": null\n}\n";
  bert.write(folder);
  write_file(folder / "in/pytorch_model.bin", "something else");
  const auto report = change_vocabulary(folder / "in", folder / "out",
                                        adds({"king", "queen", "court"}), change_request());
  CHECK(report.rows_before == 11);
  CHECK(report.rows_after == 12);
  CHECK(report.tokens_before == 9);
  CHECK(report.tokens_after == 12);
  CHECK(report.rows_gone == 0);  // the two that were made anew had no token
  REQUIRE(report.new_rows.size() == 3);
  CHECK(report.new_rows[0].id == 9);
  CHECK(report.new_rows[0].token == "king");
  const auto values = values_of(store::open_checkpoint(folder / "out"), kTable);
  double square = 0;
  for (std::size_t i = 45; i < 50; ++i) square += values[i] * values[i];
  CHECK(report.new_rows[0].norm == doctest::Approx(std::sqrt(square)).epsilon(1e-14));
  CHECK(read_file(folder / "out/config.json") ==
        "{\n  \"model_type\": \"bert\",\n  \"vocab_size\": 12,\n  \"pad_token_id\": 0,\n"
        "  \"bos_token_id\": null\n}\n");
  CHECK(read_file(folder / "out/vocab.txt") == kVocabulary + "king\nqueen\ncourt\n");
  CHECK(noted(report, "stays tied to the input table"));
  CHECK(noted(report, "'pytorch_model.bin' is copied unchanged"));
  CHECK(report.edited_files == std::vector<std::string>{"config.json", "vocab.txt"});
}

/// A BERT whose head is stored, with both names of its bias.
void write_with_head(const TempFolder& folder, bool equal, bool equal_bias = true) {
  ExampleBert bert;
  bert.decoder = true;
  bert.decoder_equal = equal;
  if (!equal) bert.config = R"({"model_type": "bert", "tie_word_embeddings": false})";
  bert.write(folder);
  auto tensors = bert.tensors();
  tensors.push_back({kDecoderBias, DType::kF32, {11}, numbers(equal_bias ? 2 : 5, 11)});
  write_file(folder / "in/model.safetensors", example_file(tensors));
}

TEST_CASE("a stored copy of the table stays one, and a second name of the bias") {
  for (const char* init : {"mean", "random", "cov", "copy:the"}) {
    const TempFolder folder;
    write_with_head(folder, true);
    const auto report = change_vocabulary(folder / "in", folder / "out", adds({"x", "y", "z"}),
                                          change_request(init));
    const store::Checkpoint out = store::open_checkpoint(folder / "out");
    CHECK(bytes_of(out, kTable) == bytes_of(out, kDecoder));
    CHECK(bytes_of(out, kBias) == bytes_of(out, kDecoderBias));
    CHECK(report.changed_tensors.size() == 4);
    CHECK(noted(report, "is tied and stays equal"));
  }
}

TEST_CASE("a head of its own gets rows of its own") {
  const TempFolder folder;
  write_with_head(folder, false, false);
  const auto report = change_vocabulary(folder / "in", folder / "out", adds({"x", "y", "z"}),
                                        change_request("copy:the"));
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  for (const std::string& name : {kTable, kDecoder, kBias, kDecoderBias}) {
    CHECK(row_bytes(out, name, 11) == row_bytes(in, name, 6));
    CHECK(row_bytes(out, name, 8) == row_bytes(in, name, 8));
  }
  CHECK(bytes_of(out, kTable) != bytes_of(out, kDecoder));
  CHECK(noted(report, "has its own 'cls.predictions.decoder.weight'"));
}

TEST_CASE("rows that go or move take their numbers in all tables and configs along") {
  const TempFolder folder;
  write_with_head(folder, false);
  write_file(folder / "in/config.json",
             R"({"model_type": "bert", "tie_word_embeddings": false, "vocab_size": 11, )"
             R"("pad_token_id": 0, "sep_token_id": 3, "eos_token_id": 99})");
  write_file(folder / "in/generation_config.json", R"({"eos_token_id": [3, 8], "top_k": 3})");
  const auto report = change_vocabulary(
      folder / "in", folder / "out",
      permutes({"the", "[SEP]", "[PAD]", "[UNK]", "[CLS]", "[MASK]", "[unused0]", "of", "and"}),
      change_request());
  const std::vector<std::uint64_t> from{6, 3, 0, 1, 2, 4, 5, 7, 8, 9, 10};
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  for (const std::string& name : {kTable, kDecoder, kBias, kDecoderBias}) {
    for (std::uint64_t row = 0; row < 11; ++row)
      CHECK(row_bytes(out, name, row) == row_bytes(in, name, from[row]));
  }
  CHECK(read_file(folder / "out/config.json") ==
        R"({"model_type": "bert", "tie_word_embeddings": false, "vocab_size": 11, )"
        R"("pad_token_id": 2, "sep_token_id": 1, "eos_token_id": 99})");
  CHECK(read_file(folder / "out/generation_config.json") ==
        R"({"eos_token_id": [1, 8], "top_k": 3})");
  CHECK(noted(report, "eos_token_id is 99, which is not a row of the table"));
  CHECK(report.rows_gone == 0);
  CHECK(contains(message_of([&] {
                   change_vocabulary(folder / "in", folder / "x", removes({"and"}),
                                     change_request());
                 }),
                 "eos_token_id is 8, a row that would be removed"));
  const auto less = change_vocabulary(folder / "in", folder / "less", removes({"[unused0]", "of"}),
                                      change_request());
  CHECK(less.rows_after == 9);
  CHECK(contains(read_file(folder / "less/generation_config.json"), "[3, 6]"));
  CHECK(read_file(folder / "less/vocab.txt") == "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nand\n");
}

/// A table of several blocks, so that threads have something to do.
ExampleBert large() {
  ExampleBert bert;
  bert.rows = 3000;
  bert.width = 200;
  return bert;
}

TEST_CASE("every initializer gives the same bytes on any number of threads") {
  const TempFolder folder;
  large().write(folder);
  for (const RowInit& init : row_inits()) {
    std::string spec(init.name);
    if (spec == "copy") spec += ":the";
    if (spec == "compound") spec += ":the,of,1000";
    std::string first;
    for (const int threads : {1, 2, 4}) {
      VocabularyRequest request = change_request(spec);
      request.write.threads = threads;
      const std::string out = folder / (spec + std::to_string(threads));
      change_vocabulary(folder / "in", out, adds({"a", "of the", "and of"}), request);
      const std::string bytes = read_file(out + "/model.safetensors");
      if (first.empty()) first = bytes;
      CHECK(bytes == first);
    }
  }
}

TEST_CASE("a large table: runs of old rows with new ones between them") {
  const TempFolder folder;
  large().write(folder);
  const VocabularyPlan plan = [](const VocabularyState& state) {
    VocabularyChange change;
    for (std::uint64_t row = 0; row < 2500; ++row) {
      change.from.push_back(row % 7 == 3 ? VocabularyChange::kNew : (row * 13) % state.rows);
      change.tokens.emplace_back();
    }
    return change;
  };
  std::filesystem::remove(folder / "in/vocab.txt");
  change_vocabulary(folder / "in", folder / "out", plan, change_request("zero"));
  const auto old = values_of(store::open_checkpoint(folder / "in"), kTable);
  const auto found = values_of(store::open_checkpoint(folder / "out"), kTable);
  REQUIRE(found.size() == 2500 * 200);
  for (std::size_t row = 0; row < 2500; ++row) {
    for (std::size_t j = 0; j < 200; j += 199)
      CHECK(found[row * 200 + j] == (row % 7 == 3 ? 0 : old[(row * 13) % 3000 * 200 + j]));
  }
}

TEST_CASE("sharded equals single, and the index follows") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder, "one");
  const auto tensors = bert.tensors();
  write_file(folder / "two/a.safetensors", example_file({tensors[1], tensors[2]}));
  write_file(folder / "two/b.safetensors", example_file({tensors[0]}));
  write_file(folder / "two/config.json", bert.config);
  write_file(folder / "two/vocab.txt", bert.vocabulary);
  write_file(folder / "two/model.safetensors.index.json",
             R"({"metadata": {"total_size": 276, "total_parameters": 69}, "weight_map": {")" +
                 kBias + R"(": "a.safetensors", "other": "a.safetensors", ")" + kTable +
                 R"(": "b.safetensors"}})");
  for (const char* name : {"one", "two"}) {
    change_vocabulary(folder / name, folder / (std::string(name) + "-out"), adds({"x", "y", "z"}),
                      change_request());
  }
  const store::Checkpoint one = store::open_checkpoint(folder / "one-out");
  const store::Checkpoint two = store::open_checkpoint(folder / "two-out");
  for (const store::TensorInfo& tensor : one.tensors())
    CHECK(bytes_of(one, tensor.name) == bytes_of(two, tensor.name));
  CHECK(contains(read_file(folder / "two-out/model.safetensors.index.json"),
                 R"({"total_size": 300, "total_parameters": 75})"));
  // What no sum can be stays.
  const std::string index = folder / "two/model.safetensors.index.json";
  std::string text = read_file(index);
  write_file(index, text.replace(text.find("276"), 3, "18446744073709551610"));
  change_vocabulary(folder / "two", folder / "wrong", adds({"x", "y", "z"}), change_request());
  CHECK(contains(read_file(folder / "wrong/model.safetensors.index.json"),
                 R"({"total_size": 18446744073709551610, "total_parameters": 75})"));
}

TEST_CASE("a file alone is changed by ids") {
  const TempFolder folder;
  write_file(folder / "a.safetensors", example_file(ExampleBert().tensors()));
  const VocabularyPlan plan = [](const VocabularyState& state) { return plan_append(state, 2, 1); };
  const auto report =
      change_vocabulary(folder / "a.safetensors", folder / "b.safetensors", plan, change_request());
  CHECK(report.rows_after == 13);
  CHECK(report.tokens_after == 0);
  CHECK(report.edited_files.empty());
  const store::Checkpoint in = store::open_checkpoint(folder / "a.safetensors");
  change_vocabulary(folder / "b.safetensors", folder / "c.safetensors", resizes(11),
                    change_request());
  CHECK(read_file(folder / "c.safetensors") == read_file(folder / "a.safetensors"));
  CHECK(in.get(kTable).shape[0] == 11);
}

TEST_CASE("a dry run and a refused one leave nothing behind") {
  const TempFolder folder;
  ExampleBert().write(folder);
  VocabularyRequest request = change_request();
  request.dry_run = true;
  const auto report = change_vocabulary(folder / "in", "", adds({"x", "y", "z"}), request);
  CHECK(report.rows_after == 12);
  CHECK(report.changed_tensors.size() == 2);
  const auto refusal = [&](const VocabularyPlan& plan, const std::string& init = "mean") {
    return message_of(
        [&] { change_vocabulary(folder / "in", folder / "out", plan, change_request(init)); });
  };
  CHECK(contains(refusal(adds({"the"})), "is already a token"));
  CHECK(contains(refusal(adds({"x"}), "copy:y"), "no such token"));
  CHECK(contains(refusal(resizes(8)), "would cut off"));
  CHECK(folder.names() == std::vector<std::string>{"in"});
  write_file(folder / "in/vocab.txt", kVocabulary + "a\nb\nc\n");
  CHECK(contains(refusal(resizes(20)),
                 "token 'c' of vocab.txt has id 11, but the table has 11 rows"));
}

TEST_CASE("nothing to change is a copy") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const auto report =
      change_vocabulary(folder / "in", folder / "out", resizes(11), change_request());
  CHECK(noted(report, "nothing changes"));
  for (const char* name : {"model.safetensors", "config.json", "vocab.txt"}) {
    CHECK(read_file(folder / (std::string("in/") + name)) ==
          read_file(folder / (std::string("out/") + name)));
  }
}

TEST_CASE("the mark of a correction follows its rows") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const std::string mark = "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=4 kept=0,4 mean=vocab";
  write_file(folder / "in/model.safetensors",
             example_file(ExampleBert().tensors(), {{std::string(kMlmMarkerKey), mark}}));
  const auto mark_of = [&](const char* name) {
    return *store::find_metadata(store::open_checkpoint(folder / name).files()[0].content.metadata,
                                 kMlmMarkerKey);
  };
  const auto moved = change_vocabulary(
      folder / "in", folder / "moved",
      permutes({"[MASK]", "the", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused0]", "of", "and"}),
      change_request());
  CHECK(mark_of("moved") ==
        "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=0 kept=0,2 mean=vocab");
  CHECK_FALSE(noted(moved, "inverse"));
  const auto grown =
      change_vocabulary(folder / "in", folder / "grown", adds({"x"}), change_request());
  CHECK(mark_of("grown") == mark);
  CHECK(noted(grown, "inverse"));
}

TEST_CASE("RoBERTa's pad token keeps its id") {
  const TempFolder folder;
  write_file(
      folder / "in/model.safetensors",
      example_file(
          {{"roberta.embeddings.word_embeddings.weight", DType::kF32, {4, 2}, numbers(1, 8)}}));
  write_file(folder / "in/config.json", R"({"model_type": "roberta", "vocab_size": 4})");
  CHECK(contains(message_of([&] {
                   change_vocabulary(folder / "in", folder / "out", permutes({"1", "0", "2", "3"}),
                                     change_request());
                 }),
                 "row 1 belongs to the padding token"));
  CHECK_NOTHROW(change_vocabulary(folder / "in", folder / "out", permutes({"2", "1", "0", "3"}),
                                  change_request()));
}

}  // namespace
}  // namespace masque::surgery
