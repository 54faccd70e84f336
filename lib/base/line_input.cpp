#include "base/line_input.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_kind.hpp"
#include "base/interrupt.hpp"
#include "base/os.hpp"

namespace masque {

namespace {

constexpr std::size_t kInputBlock = 1 << 18;

/// Waits until a descriptor that does not block has something.
void wait_for(int fd) {
  pollfd entry{fd, POLLIN, 0};
  ::poll(&entry, 1, -1);
  throw_if_interrupted();
}

/// Appends what one read of `size` bytes gives; false at the end.
bool read_some(int fd, const std::string& name, std::size_t size, std::string& out) {
  const std::size_t before = out.size();
  out.resize(before + size);
  for (;;) {
    throw_if_interrupted();
    const ssize_t got = os::read(fd, out.data() + before, size);
    if (got >= 0) {
      out.resize(before + static_cast<std::size_t>(got));
      return got > 0;
    }
    if (errno == EAGAIN) {
      wait_for(fd);
    } else if (errno != EINTR) {
      throw system_error(name, "cannot be read", errno);
    }
  }
}

}  // namespace

LineInput::LineInput(int fd, std::string name, std::uint64_t max_line, std::string field)
    : fd_(fd), name_(std::move(name)), max_line_(max_line), field_(std::move(field)) {}

void LineInput::cut(const Shard& shard) {
  const LineSpan span = find_shard(fd_, name_, shard);
  if (::lseek(fd_, static_cast<off_t>(span.begin), SEEK_SET) < 0)
    throw system_error(name_, "seeking", errno);
  left_ = span.end - span.begin;
  next_line_ += span.lines_before;
}

bool LineInput::ready() const {
  if (ended_) return true;
  pollfd entry{fd_, POLLIN, 0};
  return ::poll(&entry, 1, 0) != 0;
}

bool LineInput::read(LineBatch& batch) {
  batch.first_line = next_line_;
  batch.text.clear();
  batch.text.swap(rest_);
  while (!ended_) {
    const std::size_t before = batch.text.size();
    const std::size_t size = left_ ? std::min<std::size_t>(kInputBlock, *left_) : kInputBlock;
    ended_ = !read_some(fd_, name_, size, batch.text);
    if (left_) *left_ -= batch.text.size() - before;
    // Only what is new is searched: a long line costs its length once.
    const std::string_view added = std::string_view(batch.text).substr(before);
    if (const std::size_t end = added.rfind('\n'); end != std::string_view::npos) {
      rest_.assign(added.substr(end + 1));
      batch.text.resize(before + end + 1);
      break;
    }
    if (batch.text.size() > max_line_) break;
  }
  if (!begun_) refuse_other_kind(batch.text, name_);
  begun_ = true;
  check_lengths(batch);
  next_line_ += static_cast<std::uint64_t>(std::count(batch.text.begin(), batch.text.end(), '\n'));
  return !batch.text.empty();
}

void LineInput::check_lengths(LineBatch& batch) {
  if (batch.text.size() <= max_line_) return;
  std::uint64_t line = batch.first_line;
  for (std::size_t begin = 0; begin < batch.text.size(); ++line) {
    const std::size_t end = std::min(batch.text.find('\n', begin), batch.text.size());
    if (end - begin > max_line_) {
      if (begin == 0) {
        throw InputError(
            name_, fmt::format("line {}: more than {} bytes, expected fewer{}", line, max_line_,
                               field_.empty() ? "" : fmt::format(" ({})", field(field_))));
      }
      // The good lines go first; the bad one is found again at the next call.
      rest_.insert(0, batch.text, begin);
      batch.text.resize(begin);
      return;
    }
    begin = end + 1;
  }
}

}  // namespace masque
