// Models of llama.cpp, quantised and not, compute what transformers computes of the same weights.
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "store/checkpoint.hpp"
#include "support/golden_logits.hpp"
#include "tensor/block_encoder.hpp"
#include "tensor/quantized_block.hpp"

namespace masque::model {
namespace {

using test::check_golden_logits;
using test::read_all;

const std::string kFolder = MASQUE_TEST_DATA "/gguf_model";

TEST_CASE("models of llama.cpp compute what transformers computes of their weights") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string path = entry.path().string();
    CAPTURE(path);
    ++models;
    const store::Checkpoint golden =
        store::open_checkpoint(path.substr(0, path.size() - 5) + ".logits.safetensors");
    check_golden_logits(path, golden);
  }
  CHECK(models == 28);
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

/// Blocks of `numbers`, and the mean square of what they are off.
std::pair<std::vector<std::uint8_t>, double> encoded(std::string_view name,
                                                     const std::vector<float>& numbers) {
  const BlockFormat& format = *find_block_format(name);
  std::vector<std::uint8_t> blocks(numbers.size() / format.elements * format.bytes);
  CHECK(encode_blocks(format, numbers, std::as_writable_bytes(std::span(blocks))));
  std::vector<float> again(numbers.size());
  decode_blocks(format, std::as_bytes(std::span(blocks)), again);
  double sum = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double off = static_cast<double>(again[i]) - static_cast<double>(numbers[i]);
    sum += off * off;
  }
  return {blocks, sum / static_cast<double>(numbers.size())};
}

TEST_CASE("numbers become the blocks that the package gguf makes of them") {
  const store::Checkpoint golden = store::open_checkpoint(kFolder + "/encoded.safetensors");
  const auto numbers = read_all<float>(golden, "numbers");
  for (const std::string name : {"Q8_0", "Q4_0"}) {
    CAPTURE(name);
    CHECK(encoded(name, numbers).first == read_all<std::uint8_t>(golden, name));
  }
}

TEST_CASE("blocks of Q4_K are nearer to the numbers than those of Q4_0") {
  const store::Checkpoint golden = store::open_checkpoint(kFolder + "/encoded.safetensors");
  const auto numbers = read_all<float>(golden, "numbers");
  std::size_t rows = 0;
  for (std::size_t row = 0; row < numbers.size(); row += 256) {
    CAPTURE(row);
    const std::vector<float> own(numbers.begin() + static_cast<std::ptrdiff_t>(row),
                                 numbers.begin() + static_cast<std::ptrdiff_t>(row + 256));
    const double q4_k = encoded("Q4_K", own).second, q4_0 = encoded("Q4_0", own).second;
    const double largest = static_cast<double>(
        std::abs(*std::ranges::max_element(own, {}, [](float x) { return std::abs(x); })));
    // Scales of scales, 63 times smaller, have few bits in binary16 if the numbers are tiny.
    if (largest < 1e-2) continue;
    CHECK(std::sqrt(q4_k) <= 0.1 * largest);
    // Random rows; the first ones are made so that Q4_0 has them exactly.
    if (row < 7 * 256) continue;
    CHECK(q4_k < 0.9 * q4_0);
    ++rows;
  }
  CHECK(rows >= 6);
  // A weight far from the others leaves those of other parts as they are.
  std::vector<float> spike(256, 0.0F);
  for (std::size_t i = 0; i < 256; ++i) spike[i] = static_cast<float>(i % 16) / 16;
  CHECK(encoded("Q4_K", spike).second < 1e-5);
}

TEST_CASE("scales beyond binary16 are told") {
  for (const std::string_view name : encoded_formats()) {
    CAPTURE(name);
    const BlockFormat& format = *find_block_format(name);
    const std::vector<float> large(format.elements, -3e38F);
    std::vector<std::byte> blocks(format.bytes);
    CHECK_FALSE(encode_blocks(format, large, blocks));
  }
}

}  // namespace
}  // namespace masque::model
