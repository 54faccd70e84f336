#include "base/digest/crc32c.hpp"

#include <array>
#include <cstring>

#include "base/little_endian.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define MASQUE_CRC_INSTRUCTION __attribute__((target("sse4.2")))
#endif

namespace masque {

namespace {

// Polynomials over GF(2) with the coefficient of x^0 in the highest bit, as the sum has them.
constexpr std::uint32_t kPolynomial = 0x82F63B78;
constexpr std::uint32_t kOne = 0x80000000;
constexpr std::uint32_t kByte = 0x00800000;  // x^8

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0);
}

/// a · b modulo the polynomial.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    if (((a >> bit) & 1) != 0) product ^= b;
    b = times_x(b);
  }
  return product;
}

/// x^(8 · bytes): what a sum is multiplied with when so many zero bytes follow.
constexpr std::uint32_t shift_of(std::uint64_t bytes) {
  std::uint32_t power = kByte;
  std::uint32_t out = kOne;
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) out = multiply(out, power);
    power = multiply(power, power);
  }
  return out;
}

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    table[i] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

#ifdef MASQUE_CRC_INSTRUCTION

/// The instruction takes three steps but can start in every one: three runs side by side.
constexpr std::size_t kRun = 8192;
constexpr std::uint32_t kRunShift = shift_of(kRun);

MASQUE_CRC_INSTRUCTION std::uint32_t by_instruction(Bytes bytes, std::uint32_t running) {
  std::uint64_t state = ~running;
  while (bytes.size() >= 3 * kRun) {
    const std::byte* const at = bytes.data();
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kRun; i += 8) {
      state = _mm_crc32_u64(state, load_number<std::uint64_t>(at + i));
      second = _mm_crc32_u64(second, load_number<std::uint64_t>(at + kRun + i));
      third = _mm_crc32_u64(third, load_number<std::uint64_t>(at + 2 * kRun + i));
    }
    const auto both =
        multiply(kRunShift, static_cast<std::uint32_t>(state)) ^ static_cast<std::uint32_t>(second);
    state = multiply(kRunShift, both) ^ static_cast<std::uint32_t>(third);
    bytes = bytes.subspan(3 * kRun);
  }
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    state = _mm_crc32_u64(state, load_number<std::uint64_t>(bytes.data()));
  auto rest = static_cast<std::uint32_t>(state);
  for (const std::byte byte : bytes) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(byte));
  return ~rest;
}

#endif

}  // namespace

std::uint32_t crc32c_plain(Bytes bytes, std::uint32_t running) {
  std::uint32_t state = ~running;
  for (const std::byte byte : bytes)
    state = (state >> 8) ^ kTable[(state ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  return ~state;
}

std::uint32_t crc32c(Bytes bytes, std::uint32_t running) {
#ifdef MASQUE_CRC_INSTRUCTION
  static const bool kHas = __builtin_cpu_supports("sse4.2") != 0;
  if (kHas) return by_instruction(bytes, running);
#endif
  return crc32c_plain(bytes, running);
}

std::uint32_t crc32c_of_both(std::uint32_t first, std::uint32_t second,
                             std::uint64_t second_bytes) {
  return multiply(shift_of(second_bytes), first) ^ second;
}

}  // namespace masque
