#include "surgery/edit/head.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "store/inspect/compare_checkpoints.hpp"
#include "support/message.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kHead = "cls.predictions.decoder.weight";
const std::string kHeadBias = "cls.predictions.decoder.bias";

TieRequest tie_request() {
  TieRequest request;
  request.write.threads = 2;
  return request;
}

std::vector<std::string> changes(const std::string& a, const std::string& b) {
  std::vector<std::string> names;
  for (const auto& change :
       store::compare_checkpoints(store::open_checkpoint(a), store::open_checkpoint(b), {}))
    names.push_back(std::string(store::change_name(change.kind)) + " " + change.name);
  return names;
}

TEST_CASE("untie gives the head its tensors, tie takes them away again") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder);
  const auto untied = untie_checkpoint(folder / "in", folder / "two", tie_request());
  CHECK(untied.added == std::vector<std::string>{kHead, kHeadBias});
  CHECK(changes(folder / "in", folder / "two") ==
        std::vector<std::string>{"only-b " + kHeadBias, "only-b " + kHead});
  const store::Checkpoint two = store::open_checkpoint(folder / "two");
  CHECK(values_of(two, kHead) == values_of(two, kTable));
  CHECK(values_of(two, kHeadBias) == values_of(two, "cls.predictions.bias"));
  CHECK(contains(read_file(folder / "two/config.json"), "\"tie_word_embeddings\": false"));
  const auto tied = tie_checkpoint(folder / "two", folder / "one", tie_request());
  CHECK(tied.removed == std::vector<std::string>{kHead, kHeadBias});
  CHECK(tied.rows_different == 0);
  CHECK(changes(folder / "in", folder / "one").empty());
  CHECK(read_file(folder / "one/config.json") == bert.config);
}

TEST_CASE("a head that differs is dropped only on demand") {
  const TempFolder folder;
  ExampleBert bert;
  bert.decoder = true;
  bert.decoder_equal = false;
  bert.config = R"({"model_type": "bert", "tie_word_embeddings": false})";
  bert.write(folder);
  const std::string refusal =
      message_of([&] { tie_checkpoint(folder / "in", folder / "out", tie_request()); });
  CHECK(contains(refusal, "differs from the input table in 11 of 11 rows, by "));
  CHECK(folder.names() == std::vector<std::string>{"in"});
  TieRequest request = tie_request();
  request.drop = true;
  const auto report = tie_checkpoint(folder / "in", folder / "out", request);
  CHECK(report.rows_different == 11);
  const auto a = numbers(1, 55);
  const auto b = numbers(3, 55);
  double largest = 0;
  for (std::size_t i = 0; i < 55; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(static_cast<float>(a[i])) -
                                         static_cast<double>(static_cast<float>(b[i]))));
  }
  CHECK(report.largest_difference == largest);
  CHECK(store::open_checkpoint(folder / "out").find(kHead) == nullptr);
}

TEST_CASE("a row that is not a number differs by more than nothing") {
  const TempFolder folder;
  ExampleBert bert;
  bert.decoder = true;
  auto tensors = bert.tensors();
  tensors[2].values[7] = std::nan("");
  REQUIRE(tensors[2].name == kHead);
  bert.write(folder);
  write_file(folder / "in/model.safetensors", example_file(tensors));
  CHECK(contains(message_of([&] { tie_checkpoint(folder / "in", folder / "out", tie_request()); }),
                 "differs from the input table in 1 of 11 rows, by at most inf"));
}

TEST_CASE("the bias that the untied head read is the one that stays") {
  const TempFolder folder;
  ExampleBert bert;
  bert.decoder = true;
  auto tensors = bert.tensors();
  tensors.push_back({kHeadBias, DType::kF32, {11}, numbers(9, 11)});
  bert.write(folder);
  write_file(folder / "in/model.safetensors", example_file(tensors));
  const auto report = tie_checkpoint(folder / "in", folder / "out", tie_request());
  CHECK(report.changed == std::vector<std::string>{"cls.predictions.bias"});
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  CHECK(out.find(kHeadBias) == nullptr);
  CHECK(values_of(out, "cls.predictions.bias") ==
        values_of(store::open_checkpoint(folder / "in"), kHeadBias));
}

TEST_CASE("what is so already stays so, a stored copy goes or stays") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder, "tied");
  tie_checkpoint(folder / "tied", folder / "tied-again", tie_request());
  CHECK(changes(folder / "tied", folder / "tied-again").empty());
  untie_checkpoint(folder / "tied", folder / "own", tie_request());
  untie_checkpoint(folder / "own", folder / "own-again", tie_request());
  CHECK(changes(folder / "own", folder / "own-again").empty());
  bert.decoder = true;
  bert.write(folder, "copy");
  tie_checkpoint(folder / "copy", folder / "one", tie_request());
  CHECK(changes(folder / "tied", folder / "one").empty());
  untie_checkpoint(folder / "copy", folder / "two", tie_request());
  CHECK(changes(folder / "own", folder / "two").empty());
}

TEST_CASE("without a head, or with one that cannot be found, there is nothing to do") {
  const TempFolder folder;
  ExampleBert bert;
  bert.head = false;
  bert.write(folder);
  for (const bool tie : {false, true}) {
    const auto message = message_of([&] {
      if (tie) {
        tie_checkpoint(folder / "in", folder / "out", tie_request());
      } else {
        untie_checkpoint(folder / "in", folder / "out", tie_request());
      }
    });
    CHECK(contains(message, "no output head in the checkpoint"));
  }
}

TEST_CASE("GPT-2 without a word of its head is untied on demand") {
  const TempFolder folder;
  write_file(folder / "in/model.safetensors",
             example_file({{"wte.weight", DType::kF32, {2, 2}, {1, 2, 3, 4}}}));
  write_file(folder / "in/config.json", R"({"model_type": "gpt2"})");
  untie_checkpoint(folder / "in", folder / "out", tie_request());
  CHECK(values_of(store::open_checkpoint(folder / "out"), "lm_head.weight") ==
        std::vector<double>{1, 2, 3, 4});
}

}  // namespace
}  // namespace masque::surgery
