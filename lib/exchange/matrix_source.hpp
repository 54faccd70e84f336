// An array that is written to a file.
#pragma once

#include <cstdint>
#include <functional>

#include "base/types.hpp"
#include "tensor/dtype.hpp"

namespace masque::exchange {

/// An array to write, made chunk by chunk, so that it need not be in memory as a whole.
struct MatrixSource {
  DType dtype;  ///< of the elements
  Shape shape;  ///< of the array, outermost dimension first
  /// Writes out.size() bytes of the array from byte `offset` to `out`: row-major, little-endian.
  /// Both numbers are multiples of the element size. May be called from several threads at once.
  std::function<void(std::uint64_t offset, MutableBytes out)> fill;
};

}  // namespace masque::exchange
