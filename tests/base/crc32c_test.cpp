// CRC-32C against published vectors, a plain second implementation, and itself in parts.
#include "base/digest/crc32c.hpp"

#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "base/file/file.hpp"

namespace masque {
namespace {

std::vector<std::byte> random_bytes(std::size_t size) {
  std::vector<std::byte> out(size);
  std::uint32_t state = 12345;
  for (std::byte& byte : out) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return out;
}

// RFC 3720, B.4.
TEST_CASE("CRC-32C of the published examples") {
  std::array<std::byte, 32> bytes{};
  for (const auto sum : {crc32c, crc32c_plain}) {
    CHECK(sum({}, 0) == 0);
    CHECK(sum(as_bytes("123456789"), 0) == 0xE3069283);
    bytes.fill(std::byte{0});
    CHECK(sum(bytes, 0) == 0x8A9136AA);
    bytes.fill(std::byte{0xFF});
    CHECK(sum(bytes, 0) == 0x62A8AB43);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    CHECK(sum(bytes, 0) == 0x46DD794E);
  }
  CHECK(masked_crc32c(0) == 0xA282EAD8);
  CHECK(masked_crc32c(0x00008000) == 0xA282EAD9);
  CHECK(masked_crc32c(0x00000001) == 0xA284EAD8);
}

TEST_CASE("CRC-32C: the instruction, the table and the parts agree") {
  const std::vector<std::byte> bytes = random_bytes(200'000);
  for (const std::size_t begin : {0U, 1U, 7U}) {
    for (const std::size_t size :
         {0U, 1U, 7U, 8U, 9U, 24'575U, 24'576U, 24'577U, 49'152U, 100'003U, 199'990U}) {
      CAPTURE(begin);
      CAPTURE(size);
      const Bytes part = Bytes(bytes).subspan(begin, size);
      CHECK(crc32c(part) == crc32c_plain(part));
      CHECK(crc32c(part, 0xDEADBEEF) == crc32c_plain(part, 0xDEADBEEF));
      for (const std::size_t cut : {size / 3, size}) {
        const Bytes first = part.first(cut);
        const Bytes second = part.subspan(cut);
        CHECK(crc32c(second, crc32c(first)) == crc32c(part));
        CHECK(crc32c_of_both(crc32c(first), crc32c(second), second.size()) == crc32c(part));
      }
    }
  }
  // Longer than a 32-bit length: zeros that are never written.
  const std::uint32_t zeros = crc32c(std::array<std::byte, 8>{});
  std::uint32_t sum = zeros;
  std::uint64_t length = 8;
  for (; length < (std::uint64_t{1} << 40); length *= 2) sum = crc32c_of_both(sum, sum, length);
  CHECK(crc32c_of_both(zeros, sum, length) == crc32c_of_both(sum, zeros, 8));
}

}  // namespace
}  // namespace masque
