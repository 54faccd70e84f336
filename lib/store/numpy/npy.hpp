// NumPy's npy header: parsing with every rule checked, and writing.
//
//   offset 0    93 "NUMPY", then two bytes of version: 1.0, 2.0 or 3.0
//   offset 8    N, the length of the header: u16 (1.0) or u32 (2.0, 3.0), little-endian
//   10 or 12    N bytes of text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }
//               spaces and a line end; data begins at a multiple of 64 (of old NumPy: of 16)
//   then        the elements, row-major or column-major ("Fortran order")
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
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

// How npy spells the types of elements.

/// A type of elements as a file has them.
struct NpyType {
  DType dtype = DType::kF32;  ///< type of the elements
  bool big_endian = false;    ///< of elements of more than one byte
};

/// What the spelling `descr` means: an optional byte order (`<`, `>`, `=` or `|`) and b1, i1, i2,
/// i4, i8, u1, u2, u4, u8, f2, f4, f8 or c8. Others break a rule that names them: "object-array" (a
/// pickle), "unsupported-dtype" (text, dates, raw bytes, wider numbers) or "unknown-dtype".
Checked<NpyType> parse_npy_descr(std::string_view descr);

/// The spelling of `dtype` that NumPy writes (`<f4`), static text; nothing for types that it does
/// not know (BF16, F8 …).
std::optional<std::string_view> npy_descr(DType dtype);

// The elements of an npy put in order: row-major, little-endian.

/// Fills `out` with the next out.size() bytes of a file or member; returns a broken rule.
using ByteSource = std::function<std::optional<Violation>(MutableBytes out)>;

/// Swaps the bytes of each number of the type `dtype` in `data`: big-endian to little-endian. The
/// two parts of a complex one stay in order. `data` is of whole elements.
void swap_bytes(DType dtype, MutableBytes data);

/// Whether the elements after `header` lie column by column where that makes a difference: two
/// dimensions or more.
bool is_transposed(const NpyHeader& header);

/// Fills `out` with the elements that `source` gives as they lie after `header`, row-major and
/// little-endian; out.size() is header.data_bytes (a MASQUE_CHECK). Returns what `source` returns
/// if it is a broken rule. Memory besides `out`: 1 MiB. Throws Interrupted.
std::optional<Violation> read_npy_elements(const NpyHeader& header, const ByteSource& source,
                                           MutableBytes out);

// What the writers of npy and npz share.

/// What the array of an npy file is called where a name is needed: the file has none.
inline constexpr std::string_view kNpyName = "array";

/// The header of an array of the type `dtype` and of this `shape` that is to be written to `path`.
/// Throws InputError: a type without a spelling in npy (BF16, F8 …), more than 64 dimensions.
std::string npy_header_for(const std::string& path, DType dtype, const Shape& shape);

/// How many bytes the data of an array of the type `dtype` and of this `shape` has that is to be
/// written to `path`. Throws InputError if they are more than 2^64 bits.
std::uint64_t npy_data_bytes(const std::string& path, DType dtype, const Shape& shape);

}  // namespace masque::store
