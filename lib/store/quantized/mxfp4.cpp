// MXFP4 of gpt-oss: experts in blocks of 32 numbers of 4 bits with one exponent.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "store/quantized/quantized_weights.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kBlockElements = 32;
constexpr std::uint64_t kBlockBytes = kBlockElements / 2;
/// E2M1, codes 0 to 15.
constexpr float kFp4Numbers[16] = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                   -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

/// Experts [inputs, outputs] of blocks [outputs, inputs / 32, 16]: an expert is a piece.
class ExpertsReader : public PieceReader {
 public:
  ExpertsReader(StoredPart blocks, StoredPart exponents, std::shared_ptr<PieceCache> cache)
      : PieceReader(blocks.info.elements() * 2, blocks.info.row_elements() * 2, std::move(cache)),
        blocks_(std::move(blocks)),
        exponents_(std::move(exponents)) {}

 private:
  std::uint64_t outputs() const { return blocks_.info.shape[1]; }
  std::uint64_t blocks() const { return blocks_.info.shape[2]; }

  StoredPiece load(std::uint64_t piece) const override {
    StoredPiece stored;
    stored.codes.resize(blocks_.info.row_elements());
    blocks_.read(piece * stored.codes.size(), stored.codes);
    stored.scales.resize(exponents_.info.row_elements());
    exponents_.read_scales(piece * stored.scales.size(), stored.scales, false);
    return stored;
  }

  void decode(const StoredPiece& stored, std::uint64_t /*piece*/, std::uint64_t first,
              std::span<float> out) const override {
    std::uint64_t input = first / outputs();
    std::uint64_t output = first % outputs();
    for (float& number : out) {
      const std::uint64_t block = output * blocks() + input / kBlockElements;
      const auto pair =
          static_cast<unsigned>(stored.codes[block * kBlockBytes + input % kBlockElements / 2]);
      number = kFp4Numbers[input % 2 == 0 ? pair & 15U : pair >> 4U] * stored.scales[block];
      if (++output == outputs()) {
        output = 0;
        ++input;
      }
    }
  }

  StoredPart blocks_;
  StoredPart exponents_;
};

}  // namespace

std::string decode_mxfp4(JsonSettings& settings, QuantizedWeights& weights) {
  settings.ignore({"modules_to_not_convert", "dequantize"});
  for (const auto& [name, tensor] : weights.ending_with("_blocks")) {
    StoredPart blocks = *weights.take(tensor->name);
    QuantizedWeights::check_type(blocks, {DType::kU8});
    const Shape& shape = blocks.info.shape;
    if (shape.size() != 4 || shape[3] != kBlockBytes || blocks.info.elements() == 0)
      throw blocks.error(fmt::format("shape {}, expected [experts,outputs,blocks,{}]",
                                     shape_text(shape), kBlockBytes));
    StoredPart exponents = weights.need(name + "_scales", tensor->name);
    QuantizedWeights::check_type(exponents, {DType::kU8, DType::kF8E8M0});
    QuantizedWeights::check_shape(exponents, {shape[0], shape[1], shape[2]});
    const Shape decoded{shape[0], shape[2] * kBlockElements, shape[1]};
    const StoredPart first = blocks;
    weights.add(
        name, decoded,
        std::make_shared<ExpertsReader>(std::move(blocks), std::move(exponents), weights.cache()),
        first);
  }
  return "";
}

}  // namespace masque::store
