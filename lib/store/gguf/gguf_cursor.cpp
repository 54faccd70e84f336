#include "store/gguf/gguf_cursor.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace masque::store {

namespace {

constexpr std::uint64_t kBuffer = 1 << 16;

}  // namespace

bool GgufCursor::fail(std::string rule, std::string message, std::uint64_t offset,
                      std::string tensor) {
  if (!violation_)
    violation_ = Violation{std::move(rule), std::move(message), std::move(tensor), offset, {}};
  return false;
}

bool GgufCursor::need(std::uint64_t count) {
  if (count <= left()) return true;
  return fail("too-short",
              fmt::format("{} bytes left, expected {} more of the header", left(), count), at_);
}

void GgufCursor::fetch(std::uint64_t count) {
  if (at_ >= begin_ && at_ + count <= begin_ + buffer_.size()) return;
  begin_ = at_;
  buffer_.resize(std::min(std::max(kBuffer, count), left()));
  read_(begin_, buffer_);
}

bool GgufCursor::bytes(std::uint64_t count, std::string& out) {
  if (!need(count)) return false;
  const std::size_t before = out.size();
  out.resize(before + count);
  const auto target = std::as_writable_bytes(std::span(out).subspan(before));
  if (count > kBuffer) {
    read_(at_, target);
  } else if (count > 0) {
    fetch(count);
    std::memcpy(target.data(), buffer_.data() + (at_ - begin_), count);
  }
  at_ += count;
  return true;
}

bool GgufCursor::text(std::uint64_t most, std::string& out) {
  out.clear();
  const std::uint64_t start = at_;
  std::uint64_t length = 0;
  if (!number(length)) return false;
  if (length > left()) {
    return fail("gguf-string", fmt::format("a text of {} bytes, {} are left", length, left()),
                start);
  }
  if (length > most)
    return fail("limit-metadata", fmt::format("a text of {} bytes, at most {}", length, most),
                start);
  return bytes(length, out);
}

}  // namespace masque::store
