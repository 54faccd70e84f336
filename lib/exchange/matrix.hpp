// Any file that holds a matrix, as an array.
#pragma once

#include <string>

#include "store/numpy/array.hpp"

namespace masque::exchange {

/// Most bytes of elements that are read from npy, npz, safetensors and other checkpoints.
inline constexpr std::uint64_t kMaxMatrixBytes = std::uint64_t{4} << 30;
/// Most bytes of a file of text or PBM.
inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30;

/// The array in the file `path`, whose kind is seen from its bytes: npy, npz, safetensors and other
/// checkpoints, PBM (P1, P4), rows of '#' and '.', a mask as a JSON object (mask_text.hpp), or rows
/// of numbers between tabs or spaces (a first line of names is a header). "-" is standard input;
/// this and other streams are text and PBM only. "FILE:NAME" is one array of a file with several.
/// PBM, '#' and '.', and JSON give BOOL `[queries, keys]`; numbers in text F64 `[lines, numbers]`.
/// Throws InputError for what cannot be read, is larger than the limits above, or is none of these.
/// `check` is called before elements are read that may be more than the bytes of the file (npz), or
/// many; it may throw.
store::Array read_matrix(const std::string& path, const store::ShapeCheck& check = {});

}  // namespace masque::exchange
