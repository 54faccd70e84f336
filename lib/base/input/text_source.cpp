#include "base/input/text_source.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/file_kind.hpp"
#include "base/file/os.hpp"
#include "base/thread/interrupt.hpp"

namespace masque {

namespace {

/// Bytes that are read at once.
constexpr std::size_t kBlockBytes = 64 << 10;

std::size_t read_file_begin(int fd, const std::string& name, std::string& out) {
  out.resize(kBlockBytes);
  const ssize_t count = os::pread(fd, out.data(), out.size(), 0);
  if (count < 0) throw system_error(name, "reading", errno);
  out.resize(static_cast<std::size_t>(count));
  return out.size();
}

/// Bytes of an unpacked text that is read as a whole: a small file may unpack to any number.
constexpr std::uint64_t kMostUnpackedBytes = std::uint64_t{1} << 30;

/// Reads all bytes that `read` gives. Throws InputError for more than `limit`, which it may lower.
template <class Read>
std::string read_whole(const InputStream& stream, const std::uint64_t& limit, const Read& read) {
  std::string text;
  std::string buffer(kBlockBytes, '\0');
  while (true) {
    const std::size_t count = read(buffer.data(), buffer.size());
    if (count == 0) return text;
    stream.refuse_endless(text.size() + count);
    if (text.size() + count > limit) {
      throw InputError(
          stream.name(),
          fmt::format("has more than {} bytes{}", limit,
                      stream.is_device() ? " and is a device, expected a file or a pipe" : ""));
    }
    text.append(buffer, 0, count);
  }
}

}  // namespace

TextSource::TextSource(int fd, std::string name)
    : fd_(fd), name_(std::move(name)), encoding_(name_) {}

std::uint64_t TextSource::cut(const Shard& shard) {
  const LineSpan span = find_shard(fd_, name_, shard);
  if (::lseek(fd_, static_cast<off_t>(span.begin), SEEK_SET) < 0)
    throw system_error(name_, "seeking", errno);
  left_ = span.end - span.begin;
  at_begin_ = span.begin == 0;
  return span.lines_before;
}

std::string TextSource::begin_of_file() const {
  return at_begin_ ? std::string() : begin_of_text(fd_, name_);
}

std::size_t TextSource::read_descriptor(char* out, std::size_t size) {
  if (left_) size = std::min<std::size_t>(size, *left_);
  while (size > 0) {
    throw_if_interrupted();
    const ssize_t got = os::read(fd_, out, size);
    if (got >= 0) {
      if (left_) *left_ -= static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
    if (errno == EAGAIN) {  // a descriptor that does not block
      pollfd entry{fd_, POLLIN, 0};
      ::poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      throw system_error(name_, "reading", errno);
    }
  }
  return 0;
}

std::size_t TextSource::read_unpacked(char* out, std::size_t size) {
  while (true) {
    std::string_view rest = std::string_view(block_).substr(used_);
    if (unpacker_) {
      throw_if_interrupted();
      const std::size_t count = unpacker_->unpack(rest, out, size);
      used_ = block_.size() - rest.size();
      if (count > 0) return count;
    } else if (!rest.empty()) {
      const std::size_t count = rest.copy(out, size);
      used_ += count;
      return count;
    } else {
      return read_descriptor(out, size);
    }
    if (!rest.empty()) continue;
    block_.resize(kBlockBytes);
    used_ = 0;
    block_.resize(read_descriptor(block_.data(), block_.size()));
    if (!block_.empty()) continue;
    if (unpacker_->may_end()) return 0;
    throw InputError(name_, fmt::format("ends in the middle of its {} data, expected all of it",
                                        packing_name(packing_)));
  }
}

void TextSource::begin() {
  begun_ = true;
  if (!at_begin_) return;
  while (packing_is_open(block_)) {
    const std::size_t before = block_.size();
    block_.resize(before + kBlockBytes);
    const std::size_t count = read_descriptor(block_.data() + before, kBlockBytes);
    block_.resize(before + count);
    if (count == 0) break;
  }
  packing_ = packing_of(block_);
  if (packing_ != Packing::kNone) unpacker_ = make_unpacker(packing_, name_);
  for (char next = 0; mark_is_open(first_) && read_unpacked(&next, 1) == 1;) first_ += next;
  if (first_.starts_with(kUtf8Mark)) first_.erase(0, kUtf8Mark.size());
}

void TextSource::look(std::string_view bytes) {
  if (at_begin_ && kind_.size() < kKindBytes) {
    // A pipe may give its first bytes one by one.
    kind_ += bytes.substr(0, kKindBytes - kind_.size());
    refuse_other_kind(kind_, name_);
  }
  encoding_.add(bytes);
}

std::size_t TextSource::read(char* out, std::size_t size) {
  if (size == 0) return 0;
  if (!held_.empty()) {
    const std::size_t count = held_.copy(out, size);
    held_.erase(0, count);
    return count;
  }
  if (ended_) return 0;
  if (!begun_) begin();
  std::size_t count = 0;
  if (!first_.empty()) {
    count = first_.copy(out, size);
    first_.erase(0, count);
  } else {
    count = read_unpacked(out, size);
  }
  ended_ = count == 0;
  look({out, count});
  std::string more;
  while (!ended_ && encoding_.waits()) {
    more.resize(kBlockBytes);
    more.resize(read_unpacked(more.data(), more.size()));
    ended_ = more.empty();
    look(more);
    held_ += more;
  }
  return count;
}

bool TextSource::ready() const {
  if (ended_ || used_ < block_.size() || !first_.empty() || !held_.empty()) return true;
  pollfd entry{fd_, POLLIN, 0};
  return ::poll(&entry, 1, 0) != 0;
}

std::string begin_of_text(int fd, const std::string& name) {
  std::string out;
  // A file may end without a line feed, or begin with a line that is longer.
  if (read_file_begin(fd, name, out) == kBlockBytes && out.find('\n') != std::string::npos)
    out.resize(out.rfind('\n') + 1);
  if (out.starts_with(kUtf8Mark)) out.erase(0, kUtf8Mark.size());
  return out;
}

Packing packing_of_file(int fd, const std::string& name) {
  struct stat status {};
  if (os::stat_fd(fd, status) != 0 || !S_ISREG(status.st_mode)) return Packing::kNone;
  std::string first;
  read_file_begin(fd, name, first);
  return packing_of(first);
}

std::string read_text(const std::string& path, std::uint64_t limit) {
  const InputStream stream(path);
  TextSource source(stream.descriptor(), stream.name());
  std::uint64_t most = limit;
  return read_whole(stream, most, [&](char* out, std::size_t size) {
    const std::size_t count = source.read(out, size);
    if (source.packing() != Packing::kNone) most = std::min(limit, kMostUnpackedBytes);
    return count;
  });
}

std::string read_bytes(const std::string& path, std::uint64_t limit) {
  InputStream stream(path);
  return read_whole(stream, limit,
                    [&](char* out, std::size_t size) { return stream.read(out, size); });
}

}  // namespace masque
