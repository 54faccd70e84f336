#include "store/numpy/npy_elements.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "store/transpose.hpp"

namespace masque::store {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

/// Puts elements that arrive in column-major order where they belong in row-major order.
class Transposer {
 public:
  Transposer(const Shape& shape, std::size_t width, MutableBytes out)
      : shape_(shape), width_(width), out_(out), index_(shape.size()), stride_(shape.size()) {
    std::uint64_t stride = width;
    for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) stride_[axis] = stride;
  }

  void add(Bytes elements) {
    for (; !elements.empty(); elements = elements.subspan(width_)) {
      std::copy_n(elements.begin(), width_, out_.begin() + static_cast<std::ptrdiff_t>(at_));
      step();
    }
  }

 private:
  void step() {
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      at_ += stride_[axis];
      if (++index_[axis] < shape_[axis]) return;
      at_ -= stride_[axis] * shape_[axis];
      index_[axis] = 0;
    }
  }

  const Shape& shape_;
  std::size_t width_;
  MutableBytes out_;
  std::vector<std::uint64_t> index_;   ///< of the next element
  std::vector<std::uint64_t> stride_;  ///< bytes from one to the next along an axis
  std::uint64_t at_ = 0;
};

/// The matrix that `source` gives column by column, a run of columns at a time.
std::optional<Violation> read_matrix(const NpyHeader& header, const ByteSource& source,
                                     MutableBytes out) {
  const std::size_t width = dtype_bits(header.dtype) / 8;
  const std::size_t column = header.shape[0] * width;
  const std::size_t row = header.shape[1] * width;
  std::vector<std::byte> buffer(std::min(kPieceBytes / column * column, out.size()));
  for (std::size_t at = 0; at < out.size(); at += buffer.size()) {
    throw_if_interrupted();
    const MutableBytes piece = MutableBytes(buffer).first(std::min(buffer.size(), out.size() - at));
    if (auto violation = source(piece)) return violation;
    if (header.big_endian) swap_bytes(header.dtype, piece);
    transpose(piece.data(), piece.size() / column, header.shape[0], width,
              out.data() + at / column * width, row);
  }
  return std::nullopt;
}

}  // namespace

void swap_bytes(DType dtype, MutableBytes data) {
  const std::size_t width = dtype == DType::kC64 ? 4 : dtype_bits(dtype) / 8;
  for (std::size_t at = 0; at < data.size(); at += width) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
}

bool is_transposed(const NpyHeader& header) {
  return header.fortran_order && header.shape.size() > 1;
}

std::optional<Violation> read_npy_elements(const NpyHeader& header, const ByteSource& source,
                                           MutableBytes out) {
  MASQUE_CHECK(out.size() == header.data_bytes);
  const bool transposed = is_transposed(header);
  if (transposed && !out.empty() && header.shape.size() == 2 &&
      header.shape[0] <= kPieceBytes / (dtype_bits(header.dtype) / 8))
    return read_matrix(header, source, out);
  Transposer transposer(header.shape, dtype_bits(header.dtype) / 8, out);
  std::vector<std::byte> buffer(transposed ? std::min(kPieceBytes, out.size()) : 0);
  // Every piece is of whole elements.
  for (std::size_t at = 0; at < out.size();) {
    throw_if_interrupted();
    const std::size_t count = std::min(kPieceBytes, out.size() - at);
    const MutableBytes piece =
        transposed ? MutableBytes(buffer).first(count) : out.subspan(at, count);
    if (auto violation = source(piece)) return violation;
    if (header.big_endian) swap_bytes(header.dtype, piece);
    if (transposed) transposer.add(piece);
    at += count;
  }
  return std::nullopt;
}

}  // namespace masque::store
