#include "records/token_lines.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/decimal.hpp"

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

TokenLines::TokenLines(std::shared_ptr<const TokenFolder> folder, const Shard& shard)
    : folder_(std::move(folder)),
      sequence_(part(shard.index - 1, shard)),
      end_(part(shard.index, shard)) {}

Index TokenLines::part(std::uint64_t index, const Shard& shard) const {
  const auto all = static_cast<std::uint64_t>(folder_->sequences());
  return static_cast<Index>(all / shard.count * index + std::min(index, all % shard.count));
}

std::size_t TokenLines::read(char* out, std::size_t size) {
  while (text_.size() < size && sequence_ < end_) {
    ids_.resize(static_cast<std::size_t>(folder_->length(sequence_)));
    folder_->read(folder_->begin(sequence_++), ids_);
    append_ids(text_, ids_, ' ');
    text_ += '\n';
  }
  // What is left is at most the end of one sequence.
  const std::size_t count = text_.copy(out, size);
  text_.erase(0, count);
  return count;
}

}  // namespace masque::records
