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

// Element i is codes[i] · scales[part of i] − minima[part of i].

/// Sets the minima of all `parts` to 0.
void no_minima(std::size_t parts, float* minima) { std::fill_n(minima, parts, 0.0F); }
std::int8_t code(int value) { return static_cast<std::int8_t>(value); }

// A scale, numbers of 4 bits less 8.
void unpack_q4_0(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  *scales = half_at(block, 0);
  no_minima(1, minima);
  for (std::size_t i = 0; i < kSmall; ++i) codes[i] = code(nibble_of(block, 2, i) - 8);
}
// A scale, a number that is added, numbers of 4 bits.
void unpack_q4_1(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  *scales = half_at(block, 0);
  *minima = -half_at(block, 2);
  for (std::size_t i = 0; i < kSmall; ++i) codes[i] = code(nibble_of(block, 4, i));
}
// A scale, fifth bits, numbers of 5 bits less 16.
void unpack_q5_0(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  *scales = half_at(block, 0);
  no_minima(1, minima);
  for (std::size_t i = 0; i < kSmall; ++i) codes[i] = code(five_bits_of(block, 2, 6, i) - 16);
}
// A scale, a number that is added, fifth bits, numbers of 5 bits.
void unpack_q5_1(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  *scales = half_at(block, 0);
  *minima = -half_at(block, 2);
  for (std::size_t i = 0; i < kSmall; ++i) codes[i] = code(five_bits_of(block, 4, 8, i));
}
// A scale, numbers of 8 bits.
void unpack_q8_0(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  *scales = half_at(block, 0);
  no_minima(1, minima);
  for (std::size_t i = 0; i < kSmall; ++i) codes[i] = code(signed_at(block, 2 + i));
}

// Blocks of 256: scales of parts are whole numbers times a scale of all.

// 16 bytes with scale and minimum of 16 elements each, numbers of 2 bits, both scales.
void unpack_q2_k(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  const float d = half_at(block, 80), least = half_at(block, 82);
  for (std::size_t part = 0; part < kLarge / 16; ++part) {
    const int both = byte_at(block, part);
    scales[part] = d * static_cast<float>(both & 15);
    minima[part] = least * static_cast<float>(both >> 4);
  }
  for (std::size_t i = 0; i < kLarge; ++i)
    codes[i] = code(byte_at(block, 16 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3);
}
// Third bits, numbers of 2 bits, 16 scales of 6 bits in 12 bytes, the scale.
void unpack_q3_k(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  const float d = half_at(block, 108);
  for (std::size_t part = 0; part < kLarge / 16; ++part) {
    const int low = byte_at(block, 96 + part % 8) >> (part / 8 * 4) & 15;
    const int high = byte_at(block, 104 + part % 4) >> (part / 4 * 2) & 3;
    scales[part] = d * static_cast<float>((low | high << 4) - 32);
  }
  no_minima(kLarge / 16, minima);
  for (std::size_t i = 0; i < kLarge; ++i) {
    const int bits = byte_at(block, 32 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3;
    const int third = byte_at(block, i % 32) >> (i / 32) & 1;
    codes[i] = code(third == 1 ? bits : bits - 4);
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
void unpack_with_parts(const std::byte* block, std::size_t high, std::size_t at, std::int8_t* codes,
                       float* scales, float* minima) {
  const float d = half_at(block, 0), least = half_at(block, 2);
  for (std::size_t part = 0; part < 8; ++part) {
    const PartScale scale = part_scale(block, 4, part);
    scales[part] = d * static_cast<float>(scale.scale);
    minima[part] = least * static_cast<float>(scale.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      int q = byte_at(block, at + part / 2 * 32 + i) >> (part % 2 * 4) & 15;
      if (high > 0) q |= (byte_at(block, high + i) >> part & 1) << 4;
      codes[part * 32 + i] = code(q);
    }
  }
}
void unpack_q4_k(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  unpack_with_parts(block, 0, 16, codes, scales, minima);
}
void unpack_q5_k(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  unpack_with_parts(block, 16, 48, codes, scales, minima);
}

// Numbers of 4 bits, two more bits each, 16 scales of 8 bits, the scale.
void unpack_q6_k(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  const float d = half_at(block, 208);
  for (std::size_t part = 0; part < kLarge / 16; ++part)
    scales[part] = d * static_cast<float>(signed_at(block, 192 + part));
  no_minima(kLarge / 16, minima);
  for (std::size_t i = 0; i < kLarge; ++i) {
    const std::size_t half = i / 128, in_half = i % 128;
    const int low = byte_at(block, half * 64 + in_half % 64) >> (in_half / 64 * 4) & 15;
    const int high = byte_at(block, 128 + half * 32 + in_half % 32) >> (in_half / 32 * 2) & 3;
    codes[i] = code((low | high << 4) - 32);
  }
}
// A scale in float, numbers of 8 bits, sums that products use.
void unpack_q8_k(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  std::fill_n(scales, kLarge / kSmall, load_number<float>(block));
  no_minima(kLarge / kSmall, minima);
  for (std::size_t i = 0; i < kLarge; ++i) codes[i] = code(signed_at(block, 4 + i));
}

// Numbers of 4 bits that stand for those of a table.

constexpr std::array<int, 16> kUneven = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
/// Twice those of the format E2M1.
constexpr std::array<int, 16> kTwiceE2M1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

std::int8_t code_of(const std::array<int, 16>& table, int place) {
  return code(table[static_cast<std::size_t>(place)]);
}

// A scale, numbers of 4 bits.
void unpack_iq4_nl(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  *scales = half_at(block, 0);
  no_minima(1, minima);
  for (std::size_t i = 0; i < kSmall; ++i) codes[i] = code_of(kUneven, nibble_of(block, 2, i));
}
// The scale, high and low bits of 8 scales of 6 bits, small blocks of numbers of 4 bits.
void unpack_iq4_xs(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  const float d = half_at(block, 0);
  const auto high = load_number<std::uint16_t>(block + 2);
  no_minima(kLarge / kSmall, minima);
  for (std::size_t part = 0; part < kLarge / kSmall; ++part) {
    const int low = byte_at(block, 4 + part / 2) >> (part % 2 * 4) & 15;
    const int scale = low | (high >> (2 * part) & 3) << 4;
    scales[part] = d * static_cast<float>(scale - 32);
    for (std::size_t i = 0; i < kSmall; ++i)
      codes[part * kSmall + i] = code_of(kUneven, nibble_of(block, 8 + 16 * part, i));
  }
}
// A power of two, numbers of E2M1. Open Compute Project 2023, MX 1.0.
void unpack_mxfp4(const std::byte* block, std::int8_t* codes, float* scales, float* minima) {
  const int power = byte_at(block, 0);
  // Half of E8M0's number, since the table has twice the numbers; in float, small ones too.
  const std::uint32_t bits =
      power < 2 ? std::uint32_t{0x00200000} << power : static_cast<std::uint32_t>(power - 1) << 23;
  *scales = std::bit_cast<float>(bits);
  no_minima(1, minima);
  for (std::size_t i = 0; i < kSmall; ++i) codes[i] = code_of(kTwiceE2M1, nibble_of(block, 1, i));
}

constexpr BlockFormat kFormats[] = {
    {"IQ4_NL", kSmall, 18, 32, false, unpack_iq4_nl},
    {"IQ4_XS", kLarge, 136, 32, false, unpack_iq4_xs},
    {"MXFP4", kSmall, 17, 32, false, unpack_mxfp4},
    {"Q2_K", kLarge, 84, 16, true, unpack_q2_k},
    {"Q3_K", kLarge, 110, 16, false, unpack_q3_k},
    {"Q4_0", kSmall, 18, 32, false, unpack_q4_0},
    {"Q4_1", kSmall, 20, 32, true, unpack_q4_1},
    {"Q4_K", kLarge, 144, 32, true, unpack_q4_k},
    {"Q5_0", kSmall, 22, 32, false, unpack_q5_0},
    {"Q5_1", kSmall, 24, 32, true, unpack_q5_1},
    {"Q5_K", kLarge, 176, 32, true, unpack_q5_k},
    {"Q6_K", kLarge, 210, 16, false, unpack_q6_k},
    {"Q8_0", kSmall, 34, 32, false, unpack_q8_0},
    {"Q8_K", kLarge, 292, 32, false, unpack_q8_k},
};

/// Calls work(block, its first element, its first part) for each of the blocks `in`.
template <class Work>
void for_blocks(const BlockFormat& format, Bytes in, std::size_t elements, const Work& work) {
  const std::size_t blocks = in.size() / format.bytes;
  MASQUE_CHECK(in.size() == blocks * format.bytes && elements == blocks * format.elements);
  for (std::size_t b = 0; b < blocks; ++b)
    work(in.data() + b * format.bytes, b * format.elements, b * format.elements / format.part);
}

}  // namespace

const BlockFormat* find_block_format(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &BlockFormat::name);
  return found == std::end(kFormats) ? nullptr : found;
}

std::span<const BlockFormat> block_formats() { return kFormats; }

void unpack_blocks(const BlockFormat& format, Bytes in, const RowCodes& out) {
  const std::size_t parts = out.codes.size() / format.part;
  MASQUE_CHECK(out.scales.size() == parts && out.minima.size() == parts);
  for_blocks(format, in, out.codes.size(),
             [&](const std::byte* block, std::size_t element, std::size_t part) {
               format.unpack(block, out.codes.data() + element, out.scales.data() + part,
                             out.minima.data() + part);
             });
}

void decode_blocks(const BlockFormat& format, Bytes in, std::span<float> out) {
  std::array<std::int8_t, kLarge> codes{};
  std::array<float, kLarge / 16> scales{}, minima{};
  for_blocks(format, in, out.size(), [&](const std::byte* block, std::size_t element, std::size_t) {
    format.unpack(block, codes.data(), scales.data(), minima.data());
    for (std::size_t i = 0; i < format.elements; ++i) {
      const std::size_t part = i / format.part;
      out[element + i] = scales[part] * static_cast<float>(codes[i]) - minima[part];
    }
  });
}

}  // namespace masque
