#include "store/tensorflow/bundle_sums.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/crc32c.hpp"
#include "base/interrupt.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kVariant = 21;
constexpr std::uint64_t kResource = 20;

std::uint32_t little_endian_crc(std::uint64_t value, std::size_t bytes, std::uint32_t running) {
  std::array<std::byte, 8> text{};
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<std::byte>(value >> (8 * i));
  return crc32c(Bytes(text).first(bytes), running);
}

/// The bytes of one tensor, in order.
class TensorBytes {
 public:
  TensorBytes(const InputFile& file, std::uint64_t begin, std::uint64_t size)
      : file_(file), at_(begin), left_(size), buffer_(std::min(size, kBuffer)) {}

  std::uint64_t left() const { return left_ + (filled_ - used_); }

  /// The sum of all that is left, running on.
  std::uint32_t crc_of_rest(std::uint32_t running) {
    for (; left() > 0; used_ = filled_) {
      if (used_ == filled_) fill();
      running = crc32c(Bytes(buffer_).subspan(used_, filled_ - used_), running);
    }
    return running;
  }

  /// The next byte; there must be one.
  std::byte next() {
    if (used_ == filled_) fill();
    return buffer_[used_++];
  }

 private:
  static constexpr std::uint64_t kBuffer = 1 << 20;

  void fill() {
    throw_if_interrupted();
    filled_ = std::min<std::uint64_t>(buffer_.size(), left_);
    used_ = 0;
    file_.read(at_, MutableBytes(buffer_).first(filled_));
    at_ += filled_;
    left_ -= filled_;
  }

  const InputFile& file_;
  std::uint64_t at_;
  std::uint64_t left_;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  std::vector<std::byte> buffer_;
};

/// A number as protobuf writes it; nothing if none is left.
std::optional<std::uint64_t> next_varint(TensorBytes& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && bytes.left() > 0; shift += 7) {
    const auto byte = std::to_integer<unsigned>(bytes.next());
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// The sum of strings: lengths, their own sum, the characters. Nothing if they are not laid out so.
std::optional<std::uint32_t> crc_of_strings(TensorBytes& bytes, std::uint64_t count) {
  std::uint32_t crc = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = next_varint(bytes);
    if (!length) return std::nullopt;
    const bool small = *length <= std::numeric_limits<std::uint32_t>::max();
    crc = little_endian_crc(*length, small ? 4 : 8, crc);
  }
  if (bytes.left() < 4) return std::nullopt;
  std::array<std::byte, 4> own{};
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i] = bytes.next();
    stored |= std::to_integer<std::uint32_t>(own[i]) << (8 * i);
  }
  if (stored != masked_crc32c(crc)) return std::nullopt;
  return bytes.crc_of_rest(crc32c(own, crc));
}

}  // namespace

std::optional<Violation> check_bundle_sums(const InputFile& shard,
                                           const std::vector<BundleEntry>& entries) {
  for (const BundleEntry& entry : entries) {
    if (entry.type == kVariant || entry.type == kResource) continue;
    TensorBytes bytes(shard, entry.offset, entry.size);
    const auto crc = entry.type == kTensorflowString
                         ? crc_of_strings(bytes, element_count(entry.shape).value_or(0))
                         : std::optional(bytes.crc_of_rest(0));
    if (crc && masked_crc32c(*crc) == entry.crc) continue;
    return Violation{"bundle-crc", fmt::format("{} bytes differ from their CRC-32C", entry.size),
                     entry.name, entry.offset, shard.path()};
  }
  return std::nullopt;
}

}  // namespace masque::store
