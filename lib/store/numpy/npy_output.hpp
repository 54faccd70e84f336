// What the writers of npy and npz share.
#pragma once

#include <string>
#include <string_view>

#include "tensor/dtype.hpp"

namespace masque::store {

/// What the array of an npy file is called where a name is needed: the file has none.
inline constexpr std::string_view kNpyName = "array";

/// The header of an array of the type `dtype` and of this `shape` that is to be written to `path`.
/// Throws InputError: a type without a spelling in npy (BF16, F8 …), more than 64 dimensions.
std::string npy_header_for(const std::string& path, DType dtype, const Shape& shape);

/// How many bytes the data of an array of the type `dtype` and of this `shape` has that is to be
/// written to `path`. Throws InputError if they are more than 2^64 bits.
std::uint64_t npy_data_bytes(const std::string& path, DType dtype, const Shape& shape);

}  // namespace masque::store
