// NumPy's npy header: parsing with every rule checked, and writing.
//
//   offset 0    93 "NUMPY", then two bytes of version: 1.0, 2.0 or 3.0
//   offset 8    N, the length of the header: u16 (1.0) or u32 (2.0, 3.0), little-endian
//   10 or 12    N bytes of text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }
//               spaces and a line end; data begins at a multiple of 64 (of old NumPy: of 16)
//   then        the elements, row-major or column-major ("Fortran order")
#pragma once

#include <string>
#include <vector>

#include "store/violation.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

/// Limits on what a header may make us hold in memory.
struct NpyLimits {
  std::uint64_t header_bytes = 10'000;  ///< as NumPy
  std::uint64_t rank = 64;              ///< as NumPy
};

/// Bytes in front of the header's text, at most.
constexpr std::uint64_t kNpyPrefixBytes = 12;

/// What a valid header says.
struct NpyHeader {
  DType dtype = DType::kF32;       ///< type of the elements
  Shape shape;                     ///< elements in each dimension; empty: a scalar
  bool fortran_order = false;      ///< column-major: the first index runs fastest
  bool big_endian = false;         ///< of elements of more than one byte
  std::uint64_t data_begin = 0;    ///< byte of the file where the elements begin
  std::uint64_t data_bytes = 0;    ///< bytes of all elements
  std::vector<std::string> notes;  ///< legal but odd; worth a word
};

/// Parses and validates the header of a file of `size` bytes, of which `first` are the first
/// min(size, kNpyPrefixBytes + limits.header_bytes) or more. Every rule has a name; the first one
/// broken is returned. Bytes after the data are noted, as NumPy lets them pass. Cost O(header).
Checked<NpyHeader> parse_npy_header(Bytes first, std::uint64_t size, const NpyLimits& limits = {});

/// Everything in front of row-major data of the type `dtype` and of this `shape`: the bytes that
/// numpy.save of NumPy 2.4 writes. The type must have a spelling (npy_descr), the shape at most 64
/// dimensions: a MASQUE_CHECK.
std::string write_npy_header(DType dtype, const Shape& shape);

}  // namespace masque::store
