#include "tensor/quantized_block.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/error.hpp"
#include "base/little_endian.hpp"
#include "tensor/convert.hpp"

namespace masque {

namespace {

constexpr std::size_t kSmall = 32;   ///< elements of a block
constexpr std::size_t kLarge = 256;  ///< elements of a block of blocks

int byte_at(const std::byte* block, std::size_t i) { return std::to_integer<int>(block[i]); }
int signed_at(const std::byte* block, std::size_t i) {
  return static_cast<std::int8_t>(std::to_integer<std::uint8_t>(block[i]));
}
float half_at(const std::byte* block, std::size_t i) {
  return static_cast<float>(decode_number(load_number<std::uint16_t>(block + i), kF16));
}

/// The 4 bits of element `i` of a small block whose elements are at `at`: low halves first.
int nibble_of(const std::byte* block, std::size_t at, std::size_t i) {
  const int both = byte_at(block, at + i % (kSmall / 2));
  return i < kSmall / 2 ? both & 15 : both >> 4;
}

/// The same with a fifth bit each, of the number at `high`.
int five_bits_of(const std::byte* block, std::size_t high, std::size_t at, std::size_t i) {
  const auto bits = load_number<std::uint32_t>(block + high);
  return nibble_of(block, at, i) | static_cast<int>(bits >> i & 1) << 4;
}

// A scale, numbers of 4 bits less 8.
void decode_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < kSmall; ++i)
    out[i] = d * static_cast<float>(nibble_of(block, 2, i) - 8);
}
// A scale, a minimum, numbers of 4 bits.
void decode_q4_1(const std::byte* block, float* out) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  for (std::size_t i = 0; i < kSmall; ++i)
    out[i] = d * static_cast<float>(nibble_of(block, 4, i)) + m;
}
// A scale, fifth bits, numbers of 5 bits less 16.
void decode_q5_0(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < kSmall; ++i)
    out[i] = d * static_cast<float>(five_bits_of(block, 2, 6, i) - 16);
}
// A scale, a minimum, fifth bits, numbers of 5 bits.
void decode_q5_1(const std::byte* block, float* out) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  for (std::size_t i = 0; i < kSmall; ++i)
    out[i] = d * static_cast<float>(five_bits_of(block, 4, 8, i)) + m;
}
// A scale, numbers of 8 bits.
void decode_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = static_cast<float>(signed_at(block, 2 + i)) * d;
}

// Blocks of 256: scales of parts are whole numbers times a scale of all.

// 16 bytes with scale and minimum of 16 elements each, numbers of 2 bits, both scales.
void decode_q2_k(const std::byte* block, float* out) {
  const float d = half_at(block, 80), least = half_at(block, 82);
  for (std::size_t i = 0; i < kLarge; ++i) {
    const int scales = byte_at(block, i / 16);
    const float own = d * static_cast<float>(scales & 15);
    const float minimum = least * static_cast<float>(scales >> 4);
    const int q = byte_at(block, 16 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3;
    out[i] = own * static_cast<float>(q) - minimum;
  }
}
// Third bits, numbers of 2 bits, 16 scales of 6 bits in 12 bytes, the scale.
void decode_q3_k(const std::byte* block, float* out) {
  const float d = half_at(block, 108);
  for (std::size_t i = 0; i < kLarge; ++i) {
    const std::size_t part = i / 16;
    const int low = byte_at(block, 96 + part % 8) >> (part / 8 * 4) & 15;
    const int high = byte_at(block, 104 + part % 4) >> (part / 4 * 2) & 3;
    const float own = d * static_cast<float>((low | high << 4) - 32);
    const int bits = byte_at(block, 32 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3;
    const int third = byte_at(block, i % 32) >> (i / 32) & 1;
    out[i] = own * static_cast<float>(third == 1 ? bits : bits - 4);
  }
}

/// Scale and minimum of the 8 parts of 32 elements, of 6 bits each, from 12 bytes at `at`.
struct PartScale {
  int scale = 0;
  int minimum = 0;
};
PartScale part_scale(const std::byte* block, std::size_t at, std::size_t part) {
  const auto own = [&](std::size_t i) { return byte_at(block, at + i); };
  if (part < 4) return {own(part) & 63, own(part + 4) & 63};
  return {(own(part + 4) & 15) | (own(part - 4) >> 6) << 4, own(part + 4) >> 4 | (own(part) >> 6)
                                                                                     << 4};
}

/// Numbers of 4 bits at `at`, with a fifth one each at `high` unless that is 0: both scales, the 12
/// bytes of part_scale().
void decode_with_parts(const std::byte* block, std::size_t high, std::size_t at, float* out) {
  const float d = half_at(block, 0), least = half_at(block, 2);
  for (std::size_t part = 0; part < 8; ++part) {
    const PartScale scale = part_scale(block, 4, part);
    const float own = d * static_cast<float>(scale.scale);
    const float minimum = least * static_cast<float>(scale.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      int q = byte_at(block, at + part / 2 * 32 + i) >> (part % 2 * 4) & 15;
      if (high > 0) q |= (byte_at(block, high + i) >> part & 1) << 4;
      out[part * 32 + i] = own * static_cast<float>(q) - minimum;
    }
  }
}
void decode_q4_k(const std::byte* block, float* out) { decode_with_parts(block, 0, 16, out); }
void decode_q5_k(const std::byte* block, float* out) { decode_with_parts(block, 16, 48, out); }

// Numbers of 4 bits, two more bits each, 16 scales of 8 bits, the scale.
void decode_q6_k(const std::byte* block, float* out) {
  const float d = half_at(block, 208);
  for (std::size_t i = 0; i < kLarge; ++i) {
    const std::size_t half = i / 128, in_half = i % 128;
    const float own = d * static_cast<float>(signed_at(block, 192 + i / 16));
    const int low = byte_at(block, half * 64 + in_half % 64) >> (in_half / 64 * 4) & 15;
    const int high = byte_at(block, 128 + half * 32 + in_half % 32) >> (in_half / 32 * 2) & 3;
    out[i] = own * static_cast<float>((low | high << 4) - 32);
  }
}
// A scale in float, numbers of 8 bits, sums that products use.
void decode_q8_k(const std::byte* block, float* out) {
  const float d = load_number<float>(block);
  for (std::size_t i = 0; i < kLarge; ++i) out[i] = d * static_cast<float>(signed_at(block, 4 + i));
}

// Numbers of 4 bits that stand for those of a table.

constexpr std::array<int, 16> kUneven = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
/// Twice those of the format E2M1.
constexpr std::array<int, 16> kTwiceE2M1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

float number_of(const std::array<int, 16>& table, int code) {
  return static_cast<float>(table[static_cast<std::size_t>(code)]);
}

// A scale, numbers of 4 bits.
void decode_iq4_nl(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = d * number_of(kUneven, nibble_of(block, 2, i));
}
// The scale, high and low bits of 8 scales of 6 bits, small blocks of numbers of 4 bits.
void decode_iq4_xs(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  const auto high = load_number<std::uint16_t>(block + 2);
  for (std::size_t part = 0; part < 8; ++part) {
    const int low = byte_at(block, 4 + part / 2) >> (part % 2 * 4) & 15;
    const int scale = low | (high >> (2 * part) & 3) << 4;
    const float own = d * static_cast<float>(scale - 32);
    for (std::size_t i = 0; i < kSmall; ++i)
      out[part * kSmall + i] = own * number_of(kUneven, nibble_of(block, 8 + 16 * part, i));
  }
}
// A power of two, numbers of E2M1. Open Compute Project 2023, MX 1.0.
void decode_mxfp4(const std::byte* block, float* out) {
  const int code = byte_at(block, 0);
  // Half of E8M0's number, since the table has twice the numbers; in float, small ones too.
  const std::uint32_t bits =
      code < 2 ? std::uint32_t{0x00200000} << code : static_cast<std::uint32_t>(code - 1) << 23;
  const auto d = std::bit_cast<float>(bits);
  for (std::size_t i = 0; i < kSmall; ++i)
    out[i] = d * number_of(kTwiceE2M1, nibble_of(block, 1, i));
}

constexpr BlockFormat kFormats[] = {
    {"IQ4_NL", kSmall, 18, decode_iq4_nl}, {"IQ4_XS", kLarge, 136, decode_iq4_xs},
    {"MXFP4", kSmall, 17, decode_mxfp4},   {"Q2_K", kLarge, 84, decode_q2_k},
    {"Q3_K", kLarge, 110, decode_q3_k},    {"Q4_0", kSmall, 18, decode_q4_0},
    {"Q4_1", kSmall, 20, decode_q4_1},     {"Q4_K", kLarge, 144, decode_q4_k},
    {"Q5_0", kSmall, 22, decode_q5_0},     {"Q5_1", kSmall, 24, decode_q5_1},
    {"Q5_K", kLarge, 176, decode_q5_k},    {"Q6_K", kLarge, 210, decode_q6_k},
    {"Q8_0", kSmall, 34, decode_q8_0},     {"Q8_K", kLarge, 292, decode_q8_k},
};

}  // namespace

const BlockFormat* find_block_format(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &BlockFormat::name);
  return found == std::end(kFormats) ? nullptr : found;
}

std::span<const BlockFormat> block_formats() { return kFormats; }

void decode_blocks(const BlockFormat& format, Bytes in, std::span<float> out) {
  const std::size_t blocks = in.size() / format.bytes;
  MASQUE_CHECK(in.size() == blocks * format.bytes && out.size() == blocks * format.elements);
  for (std::size_t b = 0; b < blocks; ++b)
    format.decode(in.data() + b * format.bytes, out.data() + b * format.elements);
}

}  // namespace masque
