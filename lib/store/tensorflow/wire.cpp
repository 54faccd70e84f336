#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kMostNumber = (std::uint64_t{1} << 29) - 1;

}  // namespace

std::optional<std::uint64_t> read_varint(std::string_view text, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && at < text.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text[at++]);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<WireField> WireReader::fail() {
  broken_ = true;
  return std::nullopt;
}

std::optional<std::uint64_t> WireReader::fixed(std::size_t bytes) {
  if (message_.size() - at_ < bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(message_[at_ + i]);
  at_ += bytes;
  return value;
}

std::optional<WireField> WireReader::next() {
  if (broken_ || at_ == message_.size()) return std::nullopt;
  const auto tag = read_varint(message_, at_);
  if (!tag || *tag >> 3 == 0 || *tag >> 3 > kMostNumber) return fail();
  WireField field;
  field.number = *tag >> 3;
  field.type = static_cast<WireType>(*tag & 7);
  std::optional<std::uint64_t> value;
  switch (field.type) {
    case WireType::kVarint:
    case WireType::kBytes: value = read_varint(message_, at_); break;
    case WireType::kFixed64: value = fixed(8); break;
    case WireType::kFixed32: value = fixed(4); break;
  }
  if (!value) return fail();
  field.value = *value;
  if (field.type != WireType::kBytes) return field;
  if (*value > message_.size() - at_) return fail();
  field.bytes = message_.substr(at_, static_cast<std::size_t>(*value));
  at_ += static_cast<std::size_t>(*value);
  return field;
}

namespace wire {

namespace {

constexpr unsigned kVarint = 0;
constexpr unsigned kLengthPrefixed = 2;
constexpr unsigned kFourBytes = 5;

void put_tag(std::string& out, unsigned field, unsigned kind) {
  put_varint(out, (field << 3) | kind);
}

}  // namespace

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void put_number(std::string& out, unsigned field, std::uint64_t value) {
  if (value == 0) return;
  put_tag(out, field, kVarint);
  put_varint(out, value);
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_tag(out, field, kLengthPrefixed);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_fixed32(std::string& out, unsigned field, std::uint32_t value) {
  if (value == 0) return;
  put_tag(out, field, kFourBytes);
  put_u32(out, value);
}

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xFF);
}

}  // namespace wire

}  // namespace masque::store
