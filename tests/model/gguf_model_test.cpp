// Models of llama.cpp, quantised and not, compute what transformers computes of the same weights.
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "model/model.hpp"
#include "store/checkpoint.hpp"
#include "tensor/quantized_block.hpp"

namespace masque::model {
namespace {

const std::string kFolder = MASQUE_TEST_DATA "/gguf_model";

/// All logits of a run, row by row.
class Logits final : public Observer {
 public:
  void logits(Index /*sequence*/, Index /*first*/, MatrixView<const double> x) override {
    for (Index i = 0; i < x.rows; ++i)
      numbers.insert(numbers.end(), x.row(i), x.row(i) + x.columns);
  }
  std::vector<double> numbers;
};

template <class Number>
std::vector<Number> read_all(const store::Checkpoint& checkpoint, const std::string& name) {
  const store::TensorInfo& info = checkpoint.get(name);
  std::vector<Number> numbers(info.elements());
  checkpoint.read(info, 0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

TEST_CASE("models of llama.cpp compute what transformers computes of their weights") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string path = entry.path().string();
    CAPTURE(path);
    ++models;
    const store::Checkpoint golden =
        store::open_checkpoint(path.substr(0, path.size() - 5) + ".logits.safetensors");
    const auto expected = read_all<float>(golden, "logits");
    const auto model = open_model(path, {.precision = kernel::Precision::kF64});
    Batch batch;
    batch.add(read_all<std::int32_t>(golden, "ids"));
    Request request;
    request.logits = request.all_rows = true;
    Logits found;
    model->run(batch, request, &found);
    REQUIRE(found.numbers.size() == expected.size());
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
      difference = std::max(difference, std::abs(found.numbers[i] - expected[i]));
    }
    CHECK(difference < 2e-6 * largest);
  }
  CHECK(models == 15);
}

TEST_CASE("blocks of each type are decoded to the bits of the package gguf") {
  const store::Checkpoint golden = store::open_checkpoint(kFolder + "/blocks.safetensors");
  std::size_t types = 0;
  for (const BlockFormat& format : block_formats()) {
    if (format.name == "Q8_K") continue;  // which the package does not decode
    CAPTURE(format.name);
    ++types;
    const std::string name(format.name);
    const auto bytes = read_all<std::uint8_t>(golden, name + ".bytes");
    const auto bits = read_all<std::uint32_t>(golden, name + ".numbers");
    std::vector<float> numbers(bits.size());
    decode_blocks(format, std::as_bytes(std::span(bytes)), numbers);
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const auto expected = std::bit_cast<float>(bits[i]);
      if (std::isnan(expected)) {
        CHECK(std::isnan(numbers[i]));
      } else {
        CHECK(std::bit_cast<std::uint32_t>(numbers[i]) == bits[i]);
      }
    }
  }
  CHECK(types == 13);
}

}  // namespace
}  // namespace masque::model
