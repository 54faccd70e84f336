// Surgery on checkpoints with TensorFlow's names: tables, biases, the optimizer's slots and
// bert_config.json follow, and a head of its own is refused.
#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "support/message.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/edit/head.hpp"
#include "surgery/example.hpp"
#include "surgery/patch/patch_rows.hpp"
#include "surgery/positions/resize_positions.hpp"
#include "surgery/positions/resize_types.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"
#include "surgery/vocabulary/vocabulary_plan.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::names_in;
using test::read_file;
using test::TempFolder;
using test::write_file;

using Names = std::vector<std::string>;

const std::string kWords = "bert/embeddings/word_embeddings";
const std::string kTypes = "bert/embeddings/token_type_embeddings";
const std::string kPositions = "bert/embeddings/position_embeddings";
const std::string kOutputBias = "cls/predictions/output_bias";
const Names kSlots = {"/adam_m", "/adam_v"};

/// A Google folder of 9 tokens, with the state of an optimizer.
void write_folder(const TempFolder& folder) {
  std::vector<ExampleTensor> tensors = {{kWords, DType::kF32, {9, 2}, numbers(1, 18)},
                                        {kPositions, DType::kF32, {4, 2}, numbers(2, 8)},
                                        {kTypes, DType::kF32, {2, 2}, numbers(3, 4)},
                                        {kOutputBias, DType::kF32, {9}, numbers(4, 9)}};
  for (std::size_t i = 0; i < 4; ++i) {
    for (const std::string& slot : kSlots) {
      ExampleTensor tensor = tensors[i];
      tensor.name += slot;
      tensor.values = numbers(10 + i + slot.size(), tensor.values.size());
      tensors.push_back(std::move(tensor));
    }
  }
  tensors.push_back({"other", DType::kF32, {3}, numbers(5, 3)});
  write_file(folder / "in/model.safetensors", example_file(tensors));
  write_file(folder / "in/bert_config.json",
             R"({"vocab_size":9,"max_position_embeddings":4,"type_vocab_size":2})");
  write_file(folder / "in/vocab.txt", kVocabulary);
}

VocabularyRequest request_of(const std::string& init) {
  VocabularyRequest request;
  request.init = init;
  request.verify = true;
  request.write.threads = 2;
  return request;
}

std::vector<double> row_of(const store::Checkpoint& checkpoint, const std::string& name,
                           std::uint64_t row) {
  const std::vector<double> values = values_of(checkpoint, name);
  const auto width = static_cast<std::ptrdiff_t>(checkpoint.get(name).row_elements());
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(row) * width;
  return {first, first + width};
}

std::uint64_t in_config(const std::string& folder, const char* field) {
  return store::ModelConfig::read(folder + "/bert_config.json").size(field).value();
}

TEST_CASE("new tokens get rows in the table, the bias and the slots") {
  const TempFolder folder;
  write_folder(folder);
  const store::Checkpoint before = store::open_checkpoint(folder / "in");
  const VocabularyReport report = change_vocabulary(
      folder / "in", folder / "out",
      [](const VocabularyState& state) {
        return plan_add(state, {"new", "newer"}, false, 1);
      },
      request_of("copy:the"));
  CHECK(report.family == "bert");
  CHECK(report.tensor == kWords);
  CHECK(report.changed_tensors.size() == 6);
  const store::Checkpoint after = store::open_checkpoint(folder / "out");
  for (const std::string& name : {kWords, kOutputBias}) {
    CHECK(after.get(name).shape[0] == 11);
    CHECK(row_of(after, name, 9) == row_of(before, name, 6));
    for (const std::string& slot : kSlots) {
      CAPTURE(name + slot);
      CHECK(after.get(name + slot).shape == after.get(name).shape);
      const std::vector<double> fresh = row_of(after, name + slot, 10);
      CHECK(fresh == std::vector<double>(fresh.size(), 0.0));
      for (std::uint64_t row = 0; row < 9; ++row)
        CHECK(row_of(after, name + slot, row) == row_of(before, name + slot, row));
    }
  }
  CHECK(in_config(folder / "out", "vocab_size") == 11);
  CHECK(contains(read_file(folder / "out/vocab.txt"), "and\nnew\nnewer\n"));
  CHECK(names_in(folder / "out") == Names{"bert_config.json", "model.safetensors", "vocab.txt"});
}

TEST_CASE("rows that move take their slots along") {
  const TempFolder folder;
  write_folder(folder);
  const store::Checkpoint before = store::open_checkpoint(folder / "in");
  const Names order = {"8", "7", "6", "5", "4", "3", "2", "1", "0"};
  change_vocabulary(
      folder / "in", folder / "out",
      [&](const VocabularyState& state) {
        return plan_permute(state, {order, TokenList::As::kIds});
      },
      request_of("mean"));
  const store::Checkpoint after = store::open_checkpoint(folder / "out");
  for (const std::string& name :
       {kWords, kOutputBias, kWords + "/adam_m", kWords + "/adam_v", kOutputBias + "/adam_m"}) {
    CAPTURE(name);
    for (std::uint64_t row = 0; row < 9; ++row)
      CHECK(row_of(after, name, row) == row_of(before, name, 8 - row));
  }
  CHECK(values_of(after, kPositions + "/adam_m") == values_of(before, kPositions + "/adam_m"));
}

TEST_CASE("positions and token types are found, and their slots grow by zeros") {
  const TempFolder folder;
  write_folder(folder);
  const store::Checkpoint before = store::open_checkpoint(folder / "in");
  PositionsRequest positions;
  positions.positions = 6;
  positions.how = "last";
  CHECK(resize_positions(folder / "in", folder / "p", positions).tensor == kPositions);
  TypesRequest types;
  types.types = 3;
  CHECK(resize_types(folder / "in", folder / "t", types).tensor == kTypes);
  for (const auto& [out, name, rows] :
       {std::tuple{std::string("p"), kPositions, 6U}, {std::string("t"), kTypes, 3U}}) {
    const store::Checkpoint after = store::open_checkpoint(folder / out);
    for (const std::string& slot : kSlots) {
      CHECK(after.get(name + slot).shape == Shape{rows, 2});
      CHECK(row_of(after, name + slot, rows - 1) == std::vector<double>{0, 0});
      CHECK(row_of(after, name + slot, 1) == row_of(before, name + slot, 1));
    }
  }
  CHECK(in_config(folder / "p", "max_position_embeddings") == 6);
  CHECK(in_config(folder / "t", "type_vocab_size") == 3);
}

TEST_CASE("a tied head cannot be untied, and stays tied where requested") {
  const TempFolder folder;
  write_folder(folder);
  const std::string refusal =
      "tied keep changes both, 'ckpt convert names hf' converts to names that have one";
  CorrectionRequest request;
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "in", folder / "out", request); }),
                 refusal));
  CHECK(
      contains(message_of([&] { untie_checkpoint(folder / "in", folder / "out", {}); }), refusal));
  PatchRequest patch;
  patch.tied = TiedPolicy::kUntie;
  CHECK(contains(
      message_of([&] { apply_expressions(folder / "in", folder / "out", {"#6 = #7"}, patch); }),
      "TensorFlow has no name for an untied head"));
  CHECK(names_in(folder.path()) == Names{"in"});
  request.tied = TiedPolicy::kKeep;
  request.verify = true;
  const CorrectionReport report = correct_checkpoint(folder / "in", folder / "out", request);
  CHECK(report.head == HeadState::kTied);
  CHECK(report.changed_tensors == Names{kWords});
  CHECK(report.added_tensors.empty());
  const store::Checkpoint after = store::open_checkpoint(folder / "out");
  CHECK(values_of(after, kWords) != values_of(store::open_checkpoint(folder / "in"), kWords));
  CHECK(after.tensors().size() == store::open_checkpoint(folder / "in").tensors().size());
}

TEST_CASE("the tables of a file with TensorFlow's names under these") {
  const TempFolder folder;
  write_folder(folder);
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
  const EmbeddingTable table =
      find_embedding_table(checkpoint, store::find_config(checkpoint), std::nullopt);
  std::string roles;
  for (const TableRole& role : table_roles(table))
    roles += std::string(role.role) + " " + role.name + " " + role.state + "\n";
  CHECK(roles == "input " + kWords + " stored\nposition " + kPositions + " stored\nsegment " +
                     kTypes + " stored\ndecoder cls.predictions.decoder.weight tied\noutput_bias " +
                     kOutputBias + " stored\n");
}

}  // namespace
}  // namespace masque::surgery
