// NumPy's files: one array (npy), or several by name in a zip file (npz).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "store/violation.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

/// An array in memory.
struct Array {
  std::string name;                     ///< in an npz, without ".npy"; else empty
  DType dtype = DType::kF32;            ///< type of the elements
  Shape shape;                          ///< elements in each dimension; empty: a scalar
  std::vector<std::byte> data;          ///< row-major, little-endian, without gaps
  std::vector<std::string> notes = {};  ///< legal but odd things of its file
};

/// Throws what it has against an array of this type and shape; empty: nothing.
using ShapeCheck = std::function<void(DType dtype, const Shape& shape)>;

/// Reads the npy file `file`. Column-major and big-endian elements are put in order. Memory: the
/// array, allocated only where the file has that many bytes, and at most `max_bytes`. Throws
/// InputError if the file cannot be read; a broken rule is returned.
Checked<Array> read_npy(const InputFile& file, std::uint64_t max_bytes);

/// Reads all arrays of the npy or npz file `file`, recognised by its bytes, in the file's order;
/// together at most `max_bytes` of data. Otherwise as read_npy; members of an npz are checked by
/// their CRC-32.
Checked<std::vector<Array>> read_arrays_checked(const InputFile& file, std::uint64_t max_bytes);

/// Reads all arrays of the file `path`, at most `max_bytes` of data, as read_arrays_checked; a
/// broken rule is thrown as InputError too.
std::vector<Array> read_arrays(const std::string& path, std::uint64_t max_bytes);

/// Reads one array of the file `path`, at most `max_bytes` of data: that of an npy, or the member
/// `name` of an npz ("embeddings", without ".npy"). With an empty name an npz must have one member;
/// for an npy it must be empty. Throws InputError, also if there is no such array; it then names
/// the nearest. `check` is called with the type and shape before the data are read, and may throw:
/// a small npz may have a lot of data.
Array read_array(const std::string& path, std::string_view name, std::uint64_t max_bytes,
                 const ShapeCheck& check = {});

}  // namespace masque::store
