// Numbers and fields of protobuf messages, as they are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace masque::store::wire {

/// Appends `value` to `out` as a varint: 7 bits a byte, the lowest first.
void put_varint(std::string& out, std::uint64_t value);
/// Appends the field number `field` with `value` as a varint to `out`; nothing for 0, as proto3 has
/// it.
void put_number(std::string& out, unsigned field, std::uint64_t value);
/// Appends the field number `field` with `bytes` to `out`: a text or a message. An empty one, too.
void put_bytes(std::string& out, unsigned field, std::string_view bytes);
/// Appends the field number `field` with `value` in 4 bytes to `out`; nothing for 0.
void put_fixed32(std::string& out, unsigned field, std::uint32_t value);
/// Appends the 4 bytes of `value` to `out`, the lowest first.
void put_u32(std::string& out, std::uint32_t value);

}  // namespace masque::store::wire
