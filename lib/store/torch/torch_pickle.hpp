// The pickle of a state dict, as torch.save writes it: protocol 2.
#pragma once

#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace masque::store {

/// A tensor to be named in a pickle: row-major, all of its storage.
struct PickledTensor {
  std::string name;           ///< its key in the state dict
  DType dtype = DType::kF32;  ///< type of the elements: is_torch_dtype
  Shape shape;                ///< as torch counts: of a packed type the bytes of the last dimension
  std::size_t storage = 0;    ///< its key
};

/// Whether torch has the element type `dtype`.
bool is_torch_dtype(DType dtype);

/// The pickle of an OrderedDict of the `tensors`. Types that every torch knows are written as since
/// 0.4, the others as since 2.1. The same tensors give the same bytes.
std::string write_torch_pickle(const std::vector<PickledTensor>& tensors);

}  // namespace masque::store
