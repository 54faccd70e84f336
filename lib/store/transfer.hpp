// Moving bytes into new files: what does not change is copied inside the kernel, what does is
// computed, several pieces at a time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/file.hpp"

namespace masque::store {

/// Bytes of an open file.
struct CopyFrom {
  const InputFile* file = nullptr;
  std::uint64_t begin = 0;
};

/// Computed bytes. `fill(offset, out)` writes out.size() bytes of the piece from byte `offset` of
/// it; called from several threads, always with `offset` a multiple of `chunk_bytes` and at most
/// that many bytes.
struct Computed {
  std::function<void(std::uint64_t offset, MutableBytes out)> fill;
  std::uint64_t chunk_bytes = 1 << 20;
  const void* origin = nullptr;  ///< if set: sources of the same origin give the same bytes
};

/// Bytes given as text.
struct Literal {
  std::string text;
};

using Source = std::variant<CopyFrom, Computed, Literal>;

/// Kinds of sums of bytes: of zip files, and of TensorFlow bundles.
enum class Checksum { kCrc32, kCrc32c };

/// A run of bytes of an output file.
struct OutputRange {
  int descriptor = -1;       ///< open for writing
  std::string path;          ///< what messages call the output
  std::uint64_t offset = 0;  ///< in the output
  std::uint64_t size = 0;
  Source source;
  int sum = -1;  ///< to which of the transfer's sums it adds; none if negative
  Checksum checksum = Checksum::kCrc32;  ///< of what kind that sum is
};

/// Called from several threads with how many bytes of how many are done.
using ProgressFunction = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Asks for all the space of an output at once, so that a full disk is noticed before the work.
/// Throws InputError.
void reserve_space(int descriptor, std::uint64_t size, const std::string& path);

/// Writes all pieces. Memory: one chunk per thread. sums[i] ← the sum of the bytes of all pieces
/// with that sum, which are of one kind, in their order. Throws InputError (the first one) and
/// Interrupted; the outputs are then incomplete.
void transfer(const std::vector<OutputRange>& pieces, int threads, const ProgressFunction& progress,
              std::span<std::uint32_t> sums = {});

/// Copies bytes between files, inside the kernel where it can. Throws InputError.
void copy_bytes(const InputFile& from, std::uint64_t begin, int to, std::uint64_t offset,
                std::uint64_t size, const std::string& path);

}  // namespace masque::store
