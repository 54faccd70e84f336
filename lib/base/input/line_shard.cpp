#include "base/input/line_shard.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/os.hpp"
#include "base/input/unpack.hpp"
#include "base/json/json.hpp"
#include "base/string/text_encoding.hpp"
#include "base/thread/interrupt.hpp"

namespace masque {

namespace {

constexpr std::size_t kReadBytes = 256 << 10;

/// Where part `index` of `count` begins before it is moved to a line.
std::uint64_t cut(std::uint64_t size, std::uint64_t index, std::uint64_t count) {
  return size / count * index + size % count * index / count;
}

std::size_t read_at(int fd, const std::string& name, std::uint64_t offset, std::string& out) {
  out.resize(kReadBytes);
  const ssize_t count = os::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
  if (count < 0) throw system_error(name, "reading", errno);
  out.resize(static_cast<std::size_t>(count));
  return out.size();
}

/// The first line that begins at `offset` or after it.
std::uint64_t line_start(int fd, const std::string& name, std::uint64_t offset) {
  if (offset == 0) return 0;
  std::string bytes;
  std::uint64_t at = offset - 1;
  while (read_at(fd, name, at, bytes) > 0) {
    const std::size_t found = bytes.find('\n');
    if (found != std::string::npos) return at + found + 1;
    at += bytes.size();
  }
  return at;
}

std::uint64_t line_start(std::string_view text, std::uint64_t offset) {
  if (offset == 0) return 0;
  const std::size_t found = text.find('\n', offset - 1);
  return found == std::string_view::npos ? text.size() : found + 1;
}

std::uint64_t count_lines(int fd, const std::string& name, std::uint64_t end) {
  std::uint64_t lines = 0;
  std::string bytes;
  for (std::uint64_t at = 0; at < end; at += bytes.size()) {
    throw_if_interrupted();
    if (read_at(fd, name, at, bytes) == 0) break;
    if (bytes.size() > end - at) bytes.resize(end - at);
    lines += static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  }
  return lines;
}

}  // namespace

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = parse_unsigned(text.substr(0, slash));
  const auto count =
      slash == std::string_view::npos ? std::nullopt : parse_unsigned(text.substr(slash + 1));
  if (!index || !count || *index < 1 || *index > *count || *count > 1'000'000'000) {
    throw UsageError(
        fmt::format("{}: found '{}', expected I/N as in 2/8", field("shard"), escape(text)));
  }
  return {*index, *count};
}

LineSpan find_shard(int fd, const std::string& name, const Shard& shard) {
  struct stat status {};
  if (os::stat_fd(fd, status) != 0) throw system_error(name, "reading its status", errno);
  if (!S_ISREG(status.st_mode)) {
    throw UsageError(name +
                     ": only a file can be cut into shards; for parts of a stream, give "
                     "the number of the first record");
  }
  std::string first;
  read_at(fd, name, 0, first);
  if (const Packing packing = packing_of(first); packing != Packing::kNone) {
    throw UsageError(fmt::format(
        "{}: {} data cannot be cut into shards; unpack the file first, or give the number of the "
        "first record with a part of the unpacked text",
        name, packing_name(packing)));
  }
  refuse_other_encoding(first, name);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  LineSpan span;
  span.begin = line_start(fd, name, cut(size, shard.index - 1, shard.count));
  span.end =
      shard.index == shard.count ? size : line_start(fd, name, cut(size, shard.index, shard.count));
  span.end = std::max(span.begin, span.end);
  span.lines_before = count_lines(fd, name, span.begin);
  return span;
}

std::string digest_of_whole(int fd, const std::string& name) {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  std::string bytes;
  for (std::uint64_t at = 0; read_at(fd, name, at, bytes) > 0; at += bytes.size()) {
    throw_if_interrupted();
    hasher->add(as_bytes(bytes));
  }
  return hasher->digest();
}

LineSpan find_shard(std::string_view text, const Shard& shard) {
  LineSpan span;
  span.begin = line_start(text, cut(text.size(), shard.index - 1, shard.count));
  span.end = line_start(text, cut(text.size(), shard.index, shard.count));
  const std::string_view before = text.substr(0, span.begin);
  span.lines_before = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
  return span;
}

}  // namespace masque
