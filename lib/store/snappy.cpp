#include "store/snappy.hpp"

#include "store/wire.hpp"

namespace masque {

namespace {

constexpr std::size_t kMostGrowth = 22;  // 64 bytes from a copy of 3

/// `count` bytes at `at` as a number; `at` moves behind them.
std::optional<std::size_t> little_endian(std::string_view text, std::size_t& at,
                                         std::size_t count) {
  if (text.size() - at < count) return std::nullopt;
  std::size_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(text[at + i]);
  at += count;
  return value;
}

/// Length of a literal whose tag says `size`: up to 60 itself, else how many bytes say it.
std::optional<std::size_t> literal_length(std::string_view packed, std::size_t& at,
                                          std::size_t size) {
  if (size < 60) return size + 1;
  const auto length = little_endian(packed, at, size - 59);
  return length ? std::optional(*length + 1) : std::nullopt;
}

/// Appends `length` bytes from `back` bytes behind; they may overlap what they make.
bool append_copy(std::string& out, std::size_t back, std::size_t length, std::size_t most) {
  if (back == 0 || back > out.size() || length > most - out.size()) return false;
  for (std::size_t i = 0; i < length; ++i) out.push_back(out[out.size() - back]);
  return true;
}

}  // namespace

std::optional<std::string> unpack_snappy(std::string_view packed) {
  std::size_t at = 0;
  const auto announced = read_varint(packed, at);
  if (!announced || *announced / kMostGrowth > packed.size()) return std::nullopt;
  const auto size = static_cast<std::size_t>(*announced);
  std::string out;
  out.reserve(size);
  while (at < packed.size()) {
    const auto tag = static_cast<unsigned char>(packed[at++]);
    const unsigned kind = tag & 3U;
    if (kind == 0) {
      const auto length = literal_length(packed, at, tag >> 2U);
      if (!length || *length > packed.size() - at || *length > size - out.size())
        return std::nullopt;
      out.append(packed, at, *length);
      at += *length;
      continue;
    }
    // 1: 11 bits, three of them in the tag; 2 and 3: two and four bytes.
    const std::size_t bytes = kind == 3 ? 4 : kind;
    const auto offset = little_endian(packed, at, bytes);
    if (!offset) return std::nullopt;
    const std::size_t high = kind == 1 ? std::size_t{tag} >> 5U << 8U : 0;
    const std::size_t length = kind == 1 ? ((tag >> 2U) & 7U) + 4 : (tag >> 2U) + 1U;
    if (!append_copy(out, *offset + high, length, size)) return std::nullopt;
  }
  return out.size() == size ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace masque
