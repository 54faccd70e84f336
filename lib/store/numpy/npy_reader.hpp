// The elements of an npy that do not lie in its file as tensors are read.
#pragma once

#include "store/numpy/npz.hpp"
#include "store/numpy/unpacked_tensor.hpp"

namespace masque::store {

/// What reads the elements of an npy file with this `header`; nullptr: they lie in order.
std::shared_ptr<const TensorReader> npy_reader(const NpyHeader& header);

/// What reads the elements of `member` of an npz, an npy with this `header`; nullptr: they lie in
/// order. Deflated members and column-major ones are read through `last`, whole, and their CRC is
/// then compared.
std::shared_ptr<const TensorReader> npz_reader(const NpyHeader& header, const ZipMember& member,
                                               const std::shared_ptr<UnpackedTensor>& last);

}  // namespace masque::store
