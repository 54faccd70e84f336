// An array that is written to a file.
#pragma once

#include <cstdint>
#include <functional>

#include "base/types.hpp"
#include "tensor/dtype.hpp"

namespace masque::exchange {

/// An array to write, made chunk by chunk: `fill(offset, out)` gives out.size() bytes from byte
/// `offset`, both multiples of the element size.
struct MatrixSource {
  DType dtype;
  Shape shape;
  std::function<void(std::uint64_t offset, MutableBytes out)> fill;
};

}  // namespace masque::exchange
