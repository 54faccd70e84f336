#include "records/token_lines.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/decimal.hpp"
#include "base/error.hpp"

namespace masque::records {

void reserve_ids(std::string& out, std::size_t count) {
  if (count > (1 << 16)) out.reserve(out.size() + count * (kDecimalChars + 1));
}

void append_ids(std::string& out, std::span<const TokenId> ids, char between) {
  constexpr std::size_t kAtOnce = 512;
  std::array<char, kAtOnce*(kDecimalChars + 1)> buffer;
  reserve_ids(out, ids.size());
  for (std::size_t begin = 0; begin < ids.size(); begin += kAtOnce) {
    const std::size_t end = std::min(begin + kAtOnce, ids.size());
    char* at = buffer.data();
    for (std::size_t i = begin; i < end; ++i) {
      if (i > 0) *at++ = between;
      at = write_decimal(ids[i], at);
    }
    out.append(buffer.data(), static_cast<std::size_t>(at - buffer.data()));
  }
}

TokenLines::TokenLines(std::shared_ptr<const TokenFolder> folder, const Shard& shard,
                       std::uint64_t max_line)
    : folder_(std::move(folder)),
      sequence_(part(shard.index - 1, shard)),
      end_(part(shard.index, shard)),
      max_line_(max_line) {}

Index TokenLines::part(std::uint64_t index, const Shard& shard) const {
  const auto all = static_cast<std::uint64_t>(folder_->sequences());
  return static_cast<Index>(all / shard.count * index + std::min(index, all % shard.count));
}

std::size_t TokenLines::read(char* out, std::size_t size) {
  while (text_.size() - used_ < size && sequence_ < end_) {
    const auto length = static_cast<std::uint64_t>(folder_->length(sequence_));
    // An id and a space are at least two bytes.
    if (2 * length > max_line_ + 1) {
      throw InputError(
          fmt::format("sequence {} of {} tokens: a line of more than {} bytes, expected "
                      "fewer ({})",
                      sequence_ + 1, length, max_line_, field("max_line")));
    }
    text_.erase(0, std::exchange(used_, 0));
    ids_.resize(length);
    folder_->read(folder_->begin(sequence_++), ids_);
    append_ids(text_, ids_, ' ');
    text_ += '\n';
  }
  const std::size_t count = text_.copy(out, size, used_);
  used_ += count;
  return count;
}

}  // namespace masque::records
