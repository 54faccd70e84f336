// NumPy's files: one array (npy), or several by name in a zip file (npz).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.hpp"
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

// Writing NumPy's files: the bytes that numpy.save and numpy.savez write for the same arrays.

/// Makes out.size() bytes of an array's data from byte `offset` of it: row-major, little-endian.
/// Called from several threads, with `offset` a multiple of 1 MiB and at most that many bytes; on
/// one thread in increasing order.
using FillFunction = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// Writes an npy of elements of the type `dtype` and of this `shape`, whose data `fill` makes with
/// `threads` threads (≤ 0: default_threads()), replacing `path` as a whole or not at all. Memory:
/// 1 MiB a thread. Throws InputError: a type without a spelling in npy (BF16, F8 …), sizes that do
/// not fit a file, or what writing meets; Interrupted.
void write_npy(const std::string& path, DType dtype, const Shape& shape, const FillFunction& fill,
               int threads = 0);

/// Writes the npy file `path` of `array`, whose data must have the size that its shape says (a
/// MASQUE_CHECK). Otherwise as above.
void write_npy(const std::string& path, const Array& array);

/// Writes the npz file `path` with these `arrays` in this order, stored and not compressed, by
/// their names with ".npy" after them. Throws InputError as write_npy does, and if a name is no
/// relative path of plain components or comes twice.
void write_npz(const std::string& path, std::span<const Array> arrays);

}  // namespace masque::store
