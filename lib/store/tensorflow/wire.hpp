// Protobuf messages as data: fields one after the other, read and written without a schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace masque::store {

/// A base-128 number at `at` of `text`, at most 64 bits in at most 10 bytes; `at` ← what follows
/// it. Nothing, with `at` anywhere, if there is none.
std::optional<std::uint64_t> read_varint(std::string_view text, std::size_t& at);

/// How a field's value is written; groups are none of these and break a message.
enum class WireType : unsigned char { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// One field of a message.
struct WireField {
  std::uint64_t number = 0;           ///< from 1: what the schema calls the field
  WireType type = WireType::kVarint;  ///< how it is written
  std::uint64_t value = 0;            ///< of the types that are numbers
  std::string_view bytes;  ///< of kBytes: text, or a message in it; points into what was read

  /// Whether it is the field `wanted` and a varint.
  bool is_number(std::uint64_t wanted) const {
    return number == wanted && type == WireType::kVarint;
  }
  /// Whether it is the field `wanted` and of bytes.
  bool is_bytes(std::uint64_t wanted) const { return number == wanted && type == WireType::kBytes; }
};

/// Walks through the fields of one message. The message must outlive it. Cost O(fields).
class WireReader {
 public:
  /// Begins at the first field of `message`.
  explicit WireReader(std::string_view message) : message_(message) {}

  /// The next field; nothing at the end of the message and where it is broken.
  std::optional<WireField> next();

  /// Whether what was read so far is no message: cut off, a length beyond its end, a number of more
  /// than 64 bits, a field number or type that there is not.
  bool broken() const { return broken_; }

 private:
  std::optional<WireField> fail();
  std::optional<std::uint64_t> fixed(std::size_t bytes);

  std::string_view message_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

/// Writes numbers and fields of protobuf messages.
namespace wire {

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

}  // namespace wire

}  // namespace masque::store
