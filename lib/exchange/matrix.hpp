// Any file that holds a matrix, as an array.
#pragma once

#include <string>

#include "store/numpy/array.hpp"

namespace masque::exchange {

/// Most bytes that a matrix may take in memory.
inline constexpr std::uint64_t kMaxMatrixBytes = std::uint64_t{4} << 30;
/// Of a matrix as text.
inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30;

/// The array in a file, whose kind is seen from its bytes: npy, npz, safetensors, PBM (P1, P4),
/// rows of '#' and '.', or rows of numbers between tabs or spaces (a first line that does not begin
/// with a number is a header). "-" is standard input, text and PBM only. "FILE:NAME" is one array
/// of a file with several. Bits are BOOL, numbers in text F64. Throws InputError.
store::Array read_matrix(const std::string& path);

}  // namespace masque::exchange
