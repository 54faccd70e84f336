#include "store/gguf/gguf_readers.hpp"

#include <algorithm>
#include <utility>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

namespace {

/// Floats of a tensor with rows in another order, less a number.
class DecodedTensor : public TensorReader {
 public:
  DecodedTensor(const GgufNumbers& numbers, const GgufLayout& layout)
      : numbers_(numbers), layout_(layout) {
    // One long row, if rows stay where they are.
    if (layout_.head_rows == 0) layout_.columns = layout_.elements;
  }

  void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const override {
    MASQUE_CHECK(offset % sizeof(float) == 0 && out.size() % sizeof(float) == 0);
    const auto stored = [&](std::uint64_t from, MutableBytes bytes) {
      file.read(numbers_.begin + from, bytes);
    };
    std::vector<float> numbers;
    for (std::uint64_t at = offset / sizeof(float), end = at + out.size() / sizeof(float);
         at < end;) {
      const std::uint64_t column = at % layout_.columns;
      const std::uint64_t count = std::min({end - at, layout_.columns - column, kPiece});
      numbers.resize(count);
      numbers_.decode(stored, stored_row(at / layout_.columns) * layout_.columns + column, numbers);
      for (float& number : numbers) number -= layout_.less;
      const auto bytes = std::as_bytes(std::span(numbers));
      std::ranges::copy(bytes,
                        out.begin() + static_cast<std::ptrdiff_t>(at * sizeof(float) - offset));
      at += count;
    }
  }

  const BlockFormat* block_format() const override {
    return layout_.less == 0 ? numbers_.blocks : nullptr;
  }
  void read_blocks(const InputFile& file, std::uint64_t first, MutableBytes out) const override {
    const std::uint64_t stored =
        stored_row(first / layout_.columns) * layout_.columns + first % layout_.columns;
    file.read(numbers_.begin + numbers_.bytes(stored), out);
  }

 private:
  static constexpr std::uint64_t kPiece = 1 << 16;

  /// The row of the file that has row `row`: of a head those of its first half stand at even
  /// places, those of its second half at odd ones.
  std::uint64_t stored_row(std::uint64_t row) const {
    if (layout_.head_rows == 0) return row;
    const std::uint64_t in_head = row % layout_.head_rows, half = layout_.head_rows / 2;
    return row - in_head + 2 * (in_head % half) + in_head / half;
  }

  GgufNumbers numbers_;
  GgufLayout layout_;
};

/// An expert is a piece: of each part its bytes, one after another.
class TurnedExperts : public PieceReader {
 public:
  TurnedExperts(std::vector<GgufExperts> parts, std::uint64_t experts, std::uint64_t rows,
                std::uint64_t columns, std::shared_ptr<PieceCache> cache)
      : PieceReader(experts * rows * columns * parts.size(), rows * columns * parts.size(),
                    std::move(cache)),
        parts_(std::move(parts)),
        rows_(rows),
        columns_(columns) {}

 private:
  StoredPiece load(std::uint64_t piece) const override {
    StoredPiece stored;
    for (const GgufExperts& part : parts_) {
      const std::uint64_t bytes = part.numbers.bytes(rows_ * columns_), at = stored.codes.size();
      stored.codes.resize(at + bytes);
      part.file->read(part.numbers.begin + piece * bytes, std::span(stored.codes).subspan(at));
    }
    return stored;
  }

  void decode(const StoredPiece& stored, std::uint64_t /*piece*/, std::uint64_t first,
              std::span<float> out) const override {
    if (out.empty()) return;
    const std::uint64_t outputs = rows_ * parts_.size(), last = first + out.size() - 1;
    const std::uint64_t input = first / outputs;
    std::vector<float> numbers(last / outputs - input + 1);
    std::uint64_t begin = 0;  // of the part in `stored`
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const GgufNumbers& part = parts_[p].numbers;
      const auto read = [&](std::uint64_t offset, MutableBytes bytes) {
        std::copy_n(stored.codes.begin() + static_cast<std::ptrdiff_t>(begin + offset),
                    bytes.size(), bytes.begin());
      };
      for (std::uint64_t row = 0; row < rows_; ++row) {
        part.decode(read, row * columns_ + input, numbers);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const std::uint64_t at = (input + i) * outputs + row * parts_.size() + p;
          if (at >= first && at <= last) out[at - first] = numbers[i];
        }
      }
      begin += part.bytes(rows_ * columns_);
    }
  }

  std::vector<GgufExperts> parts_;
  std::uint64_t rows_;
  std::uint64_t columns_;
};

}  // namespace

std::uint64_t GgufNumbers::bytes(std::uint64_t elements) const {
  if (blocks != nullptr) return elements / blocks->elements * blocks->bytes;
  return elements * (dtype_bits(dtype) / 8);
}

void GgufNumbers::decode(const std::function<void(std::uint64_t, MutableBytes)>& read,
                         std::uint64_t first, std::span<float> out) const {
  if (blocks == nullptr) {
    const std::uint64_t width = dtype_bits(dtype) / 8;
    std::vector<std::byte> bytes(out.size() * width);
    read(first * width, bytes);
    return to_float(dtype, bytes, out);
  }
  const std::uint64_t block = first / blocks->elements;
  const std::uint64_t count = divide_up(first + out.size(), blocks->elements) - block;
  std::vector<std::byte> bytes(count * blocks->bytes);
  std::vector<float> numbers(count * blocks->elements);
  read(block * blocks->bytes, bytes);
  decode_blocks(*blocks, bytes, numbers);
  std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(first - block * blocks->elements),
              out.size(), out.begin());
}

std::shared_ptr<const TensorReader> decoded_reader(const GgufNumbers& numbers,
                                                   const GgufLayout& layout) {
  return std::make_shared<DecodedTensor>(numbers, layout);
}

std::shared_ptr<const TensorReader> turned_reader(std::vector<GgufExperts> parts,
                                                  std::uint64_t experts, std::uint64_t rows,
                                                  std::uint64_t columns,
                                                  std::shared_ptr<PieceCache> cache) {
  return std::make_shared<TurnedExperts>(std::move(parts), experts, rows, columns,
                                         std::move(cache));
}

}  // namespace masque::store
