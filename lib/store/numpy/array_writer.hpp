// Writing NumPy's files: the bytes that numpy.save and numpy.savez write for the same arrays.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "store/numpy/array.hpp"

namespace masque::store {

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
