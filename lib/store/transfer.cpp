#include "store/transfer.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/digest/crc32c.hpp"
#include "base/error.hpp"
#include "base/file/os.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "store/zip/zip_stream.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kCopyChunk = 8 << 20;
constexpr std::uint64_t kTransferBytes = 1 << 20;

struct Job {
  const OutputRange* piece;
  std::uint64_t begin;
  std::uint64_t size;
  std::uint32_t crc = 0;  ///< if the piece has a sum
};

constexpr int kNoSum = -1;

std::uint32_t sum_of(Checksum kind, Bytes bytes, std::uint32_t running = 0) {
  return kind == Checksum::kCrc32c ? crc32c(bytes, running) : crc32_of(bytes, running);
}

std::uint32_t sum_of_both(Checksum kind, std::uint32_t first, std::uint32_t second,
                          std::uint64_t second_bytes) {
  return kind == Checksum::kCrc32c ? crc32c_of_both(first, second, second_bytes)
                                   : crc32_of_both(first, second, second_bytes);
}

std::uint64_t chunk_of(const Source& source) {
  if (const auto* computed = std::get_if<Computed>(&source)) return computed->chunk_bytes;
  return kCopyChunk;
}

/// Returns the sum of the bytes if one is requested, otherwise 0.
std::uint32_t copy_through_buffer(const InputFile& from, std::uint64_t begin, int to,
                                  std::uint64_t offset, std::uint64_t size, const std::string& path,
                                  std::optional<Checksum> kind) {
  std::vector<std::byte> buffer(std::min(size, kTransferBytes));
  std::uint32_t crc = 0;
  while (size > 0) {
    const MutableBytes part =
        MutableBytes(buffer).first(std::min<std::uint64_t>(size, kTransferBytes));
    from.read(begin, part);
    write_at(to, offset, part, path);
    if (kind) crc = sum_of(*kind, part, crc);
    begin += part.size();
    offset += part.size();
    size -= part.size();
  }
  return crc;
}

void run(Job& job, std::vector<std::byte>& buffer) {
  const OutputRange& piece = *job.piece;
  const bool sums = piece.sum != kNoSum;
  const std::uint64_t offset = piece.offset + job.begin;
  if (const auto* copy = std::get_if<CopyFrom>(&piece.source)) {
    const std::uint64_t begin = copy->begin + job.begin;
    if (sums) {
      job.crc = copy_through_buffer(*copy->file, begin, piece.descriptor, offset, job.size,
                                    piece.path, piece.checksum);
    } else {
      copy_bytes(*copy->file, begin, piece.descriptor, offset, job.size, piece.path);
    }
    return;
  }
  Bytes bytes;
  if (const auto* literal = std::get_if<Literal>(&piece.source)) {
    bytes = as_bytes(std::string_view(literal->text).substr(job.begin, job.size));
  } else {
    buffer.resize(std::max<std::size_t>(buffer.size(), job.size));
    const MutableBytes out = MutableBytes(buffer).first(job.size);
    std::get<Computed>(piece.source).fill(job.begin, out);
    bytes = out;
  }
  write_at(piece.descriptor, offset, bytes, piece.path);
  if (sums) job.crc = sum_of(piece.checksum, bytes);
}

}  // namespace

void copy_bytes(const InputFile& from, std::uint64_t begin, int to, std::uint64_t offset,
                std::uint64_t size, const std::string& path) {
  MASQUE_CHECK(begin <= from.size() && size <= from.size() - begin);
  while (size > 0) {
    const ssize_t count = os::copy_range(from.descriptor(), static_cast<off_t>(begin), to,
                                         static_cast<off_t>(offset), size);
    if (count > 0) {
      begin += static_cast<std::uint64_t>(count);
      offset += static_cast<std::uint64_t>(count);
      size -= static_cast<std::uint64_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) {
      throw_if_interrupted();
      continue;
    }
    // Across file systems, or not supported: plain reading and writing finds out what is wrong.
    if (count == 0 || errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
      copy_through_buffer(from, begin, to, offset, size, path, std::nullopt);
      return;
    }
    throw system_error(path, "writing", errno);
  }
}

void reserve_space(int descriptor, std::uint64_t size, const std::string& path) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    throw InputError(path, fmt::format("would have {} bytes, more than a file can", size));
  }
  if (size == 0 || os::allocate(descriptor, static_cast<off_t>(size)) == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR || errno == EINVAL) return;
  throw system_error(path, fmt::format("reserving {} bytes", size), errno);
}

void transfer(const std::vector<OutputRange>& pieces, int threads, const ProgressFunction& progress,
              std::span<std::uint32_t> sums) {
  std::vector<Job> jobs;
  std::uint64_t total = 0;
  for (const OutputRange& piece : pieces) {
    const std::uint64_t chunk = chunk_of(piece.source);
    for (std::uint64_t begin = 0; begin < piece.size; begin += chunk) {
      jobs.push_back({&piece, begin, std::min(chunk, piece.size - begin)});
    }
    total += piece.size;
  }
  std::atomic<std::uint64_t> done{0};
  parallel_for(static_cast<Index>(jobs.size()), threads, [&](Index i) {
    thread_local std::vector<std::byte> buffer;
    Job& job = jobs[static_cast<std::size_t>(i)];
    run(job, buffer);
    // The disk starts at once instead of at the sync: only a hint, so its result does not matter.
    static_cast<void>(::sync_file_range(job.piece->descriptor,
                                        static_cast<off_t>(job.piece->offset + job.begin),
                                        static_cast<off_t>(job.size), SYNC_FILE_RANGE_WRITE));
    const std::uint64_t now = done += job.size;
    if (progress) progress(now, total);
  });
  std::ranges::fill(sums, 0);
  for (const Job& job : jobs) {
    if (job.piece->sum == kNoSum) continue;
    std::uint32_t& sum = sums[static_cast<std::size_t>(job.piece->sum)];
    sum = sum_of_both(job.piece->checksum, sum, job.crc, job.size);
  }
}

}  // namespace masque::store
