#include "store/tensorflow/wire_writer.hpp"

namespace masque::store::wire {

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

}  // namespace masque::store::wire
