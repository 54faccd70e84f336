#include "base/text_source.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/interrupt.hpp"
#include "base/os.hpp"
#include "base/utf8.hpp"

namespace masque {

namespace {

using namespace std::string_view_literals;

/// Bytes that are read at once, and in which NUL bytes count.
constexpr std::size_t kBlockBytes = 64 << 10;
constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF"sv;

struct Mark {
  std::string_view bytes;
  std::string_view encoding;  ///< as iconv calls it; empty: UTF-8
};
/// The first match counts: that of UTF-32 begins as that of UTF-16.
constexpr std::array kMarks{Mark{kUtf8Mark, {}}, Mark{"\xFF\xFE\0\0"sv, "UTF-32"sv},
                            Mark{"\0\0\xFE\xFF"sv, "UTF-32"sv}, Mark{"\xFF\xFE"sv, "UTF-16"sv},
                            Mark{"\xFE\xFF"sv, "UTF-16"sv}};

bool mark_is_open(std::string_view first) {
  return std::ranges::any_of(kMarks, [&](const Mark& mark) {
    return first.size() < mark.bytes.size() && mark.bytes.starts_with(first);
  });
}

[[noreturn]] void refuse_encoding(const std::string& name, std::string_view encoding,
                                  std::string_view how) {
  throw InputError(name, fmt::format("{}{}, expected UTF-8: iconv -f {} -t UTF-8 converts it",
                                     encoding, how, encoding));
}

/// Throws for a mark of another encoding.
void refuse_mark(std::string_view first, const std::string& name) {
  const auto mark =
      std::ranges::find_if(kMarks, [&](const Mark& one) { return first.starts_with(one.bytes); });
  if (mark != kMarks.end() && !mark->encoding.empty()) refuse_encoding(name, mark->encoding, "");
}

bool is_control(char c) { return (c >= 0 && c < ' ' && (c < '\t' || c > '\r')) || c == '\x7F'; }

/// Whether all surrogates of `text`, UTF-16 with the low byte at place `low` of two, are in pairs.
bool pairs_surrogates(std::string_view text, std::size_t low) {
  bool open = false;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int kind = text[i + 1 - low] & 0xFC;
    if ((kind == 0xDC) != open) return false;
    open = kind == 0xD8;
  }
  return true;
}

/// Which encoding puts its NUL bytes where `text` has them; empty: none.
std::string_view encoding_of(std::string_view text) {
  std::array<std::size_t, 4> nul{};  // by the place in four bytes
  for (std::size_t i = 0; i < text.size(); ++i) nul[i % 4] += text[i] == '\0' ? 1U : 0U;
  const std::size_t all = nul[0] + nul[1] + nul[2] + nul[3];
  if (all == text.size()) return {};
  const auto most = [](std::size_t part, std::size_t whole) { return part * 10 >= whole * 9; };
  if (most(nul[2] + nul[3], text.size() / 2)) return "UTF-32LE";
  if (most(nul[0] + nul[1], text.size() / 2)) return "UTF-32BE";
  if (most(nul[1] + nul[3], all) && pairs_surrogates(text, 0)) return "UTF-16LE";
  if (most(nul[0] + nul[2], all) && pairs_surrogates(text, 1)) return "UTF-16BE";
  return {};
}

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

void EncodingCheck::add(std::string_view bytes) {
  if (done_) return;
  first_ += bytes.substr(0, kBlockBytes - first_.size());
  const bool all = bytes.empty() || first_.size() == kBlockBytes;
  if (all || !mark_is_open(first_)) refuse_mark(first_, name_);
  const std::size_t nul = first_.find('\0');
  if (nul != std::string::npos) {
    // Up to the end of its line, which comes in one piece or in several.
    const std::size_t end = first_.find('\n', nul);
    if (end == std::string::npos && !all) return;
    judge(std::string_view(first_).substr(0, end == std::string::npos ? end : end + 1));
  }
  if (nul == std::string::npos && !all) return;
  done_ = true;
  first_ = {};
}

void EncodingCheck::judge(std::string_view text) const {
  std::string valid;
  const std::uint64_t odd = append_replacing_invalid(text, valid) +
                            static_cast<std::uint64_t>(std::ranges::count_if(text, is_control));
  if (odd * 8 < text.size()) return;
  if (text.substr(std::min<std::size_t>(text.size(), 257)).starts_with("ustar"))
    throw InputError(name_, "a tar archive, expected a text: extract it first");
  if (const std::string_view encoding = encoding_of(first_); !encoding.empty())
    refuse_encoding(name_, encoding, " without a byte-order mark");
  throw InputError(name_, "NUL bytes, expected a text in UTF-8");
}

void refuse_other_encoding(std::string_view first, const std::string& name) {
  EncodingCheck check(name);
  check.add(first);
  check.add({});
}

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
  if (size == 0 || ended_) return 0;
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
  return count;
}

bool TextSource::ready() const {
  if (ended_ || used_ < block_.size() || !first_.empty()) return true;
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
