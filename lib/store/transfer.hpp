// Moving bytes into new files: what does not change is copied inside the kernel, what does is
// computed, several pieces at a time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/file/file.hpp"

namespace masque::store {

/// Bytes of an open file.
struct CopyFrom {
  const InputFile* file = nullptr;  ///< must outlive the source
  std::uint64_t begin = 0;          ///< first byte in the file
};

/// Computed bytes. `fill(offset, out)` writes out.size() bytes of the piece from byte `offset` of
/// it; called from several threads, always with `offset` a multiple of `chunk_bytes` and at most
/// that many bytes.
struct Computed {
  std::function<void(std::uint64_t offset, MutableBytes out)> fill;  ///< thread-safe; may throw
  std::uint64_t chunk_bytes = 1 << 20;  ///< most bytes of a call, from 1
  const void* origin = nullptr;         ///< if set: sources of the same origin give the same bytes
};

/// Bytes given as text.
struct Literal {
  std::string text;  ///< the bytes
};

/// Where the bytes of a part of an output come from.
using Source = std::variant<CopyFrom, Computed, Literal>;

/// Kinds of sums of bytes: of zip files, and of TensorFlow bundles.
enum class Checksum { kCrc32, kCrc32c };

/// A run of bytes of an output file.
struct OutputRange {
  int descriptor = -1;       ///< open for writing
  std::string path;          ///< what messages call the output
  std::uint64_t offset = 0;  ///< first byte in the output
  std::uint64_t size = 0;    ///< bytes
  Source source;             ///< where they come from
  int sum = -1;              ///< to which of the transfer's sums it adds; none if negative
  Checksum checksum = Checksum::kCrc32;  ///< of what kind that sum is
};

/// Called from several threads with how many bytes of how many are done.
using ProgressFunction = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Asks for all the space of an output at once, `size` bytes of `descriptor`, so that a full disk
/// is noticed before the work; nothing where the file system cannot. `path` is what messages call
/// the output. Throws InputError.
void reserve_space(int descriptor, std::uint64_t size, const std::string& path);

/// Writes all `pieces` with `threads` threads (≤ 0: default_threads()); calls `progress`, if it is
/// not empty, after each chunk. Memory: one chunk per thread. Sets sums[i] to the sum of the bytes
/// of all pieces with that sum, which are of one kind, in their order. Throws InputError (the first
/// one) and Interrupted; the outputs are then incomplete.
void transfer(const std::vector<OutputRange>& pieces, int threads, const ProgressFunction& progress,
              std::span<std::uint32_t> sums = {});

/// Copies `size` bytes of `from` from byte `begin` on, which it must have (a MASQUE_CHECK), to byte
/// `offset` of the descriptor `to`, inside the kernel where it can. `path` is what messages call
/// the output. Throws InputError and Interrupted.
void copy_bytes(const InputFile& from, std::uint64_t begin, int to, std::uint64_t offset,
                std::uint64_t size, const std::string& path);

}  // namespace masque::store
