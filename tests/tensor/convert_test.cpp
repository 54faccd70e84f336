// Blocks of any length and place equal the single elements, and elements survive as text.
#include "tensor/convert.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "support/table.hpp"
#include "tensor/formats.hpp"

namespace masque {
namespace {

template <class T>
std::vector<std::byte> bytes_of(std::initializer_list<T> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

std::vector<double> doubles(DType dtype, const std::vector<std::byte>& bytes) {
  std::vector<double> out(bytes.size() * components(dtype) / (dtype_bits(dtype) / 8));
  to_double(dtype, bytes, out);
  return out;
}

template <class T>
std::string text_of(DType dtype, std::initializer_list<T> values) {
  return element_text(dtype, bytes_of(values).data());
}

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

TEST_CASE("every type decodes its ends exactly") {
  using Doubles = std::vector<double>;
  CHECK(doubles(DType::kBool, bytes_of<std::uint8_t>({0, 1})) == Doubles{0, 1});
  CHECK(doubles(DType::kU8, bytes_of<std::uint8_t>({0, 255})) == Doubles{0, 255});
  CHECK(doubles(DType::kI8, bytes_of<std::int8_t>({-128, 127})) == Doubles{-128, 127});
  CHECK(doubles(DType::kU16, bytes_of<std::uint16_t>({65535})) == Doubles{65535});
  CHECK(doubles(DType::kI16, bytes_of<std::int16_t>({-32768})) == Doubles{-32768});
  CHECK(doubles(DType::kU32, bytes_of<std::uint32_t>({4294967295U})) == Doubles{4294967295.0});
  CHECK(doubles(DType::kI32, bytes_of<std::int32_t>({-2147483647 - 1})) == Doubles{-2147483648.0});
  CHECK(doubles(DType::kI64, bytes_of<std::int64_t>({-(1LL << 53), (1LL << 53) - 1})) ==
        Doubles{-0x1p53, 0x1p53 - 1});
  CHECK(doubles(DType::kU64, bytes_of<std::uint64_t>({~0ULL, 1})) == Doubles{0x1p64, 1});
  CHECK(doubles(DType::kF32, bytes_of<float>({-0x1p-149F, 3.4028234e38F})) ==
        Doubles{-0x1p-149, static_cast<double>(3.4028234e38F)});
  CHECK(doubles(DType::kF64, bytes_of<double>({5e-324, 1.7e308})) == Doubles{5e-324, 1.7e308});
  CHECK(doubles(DType::kC64, bytes_of<float>({1, -2, 3, -4})) == Doubles{1, -2, 3, -4});
  CHECK(doubles(DType::kF8E8M0, bytes_of<std::uint8_t>({0, 127})) == Doubles{0x1p-127, 1});
}

TEST_CASE("a block of any length at any place decodes as its elements") {
  std::mt19937_64 random(7);
  for (const DType dtype : all_dtypes()) {
    if (is_packed(dtype)) continue;
    const std::size_t size = dtype_bits(dtype) / 8;
    const std::size_t parts = components(dtype);
    CAPTURE(dtype_name(dtype));
    for (std::size_t length = 0; length <= 40; ++length) {
      for (std::size_t shift = 0; shift < 3; ++shift) {
        std::vector<std::byte> bytes(shift + length * size);
        for (auto& byte : bytes) byte = static_cast<std::byte>(random());
        const Bytes block = Bytes(bytes).subspan(shift);
        std::vector<double> whole(length * parts);
        to_double(dtype, block, whole);
        for (std::size_t i = 0; i < length; ++i) {
          std::vector<double> one(parts);
          to_double(dtype, block.subspan(i * size, size), one);
          for (std::size_t j = 0; j < parts; ++j) REQUIRE(same(whole[i * parts + j], one[j]));
        }
      }
    }
  }
}

TEST_CASE("a block of any length at any place encodes as its elements") {
  std::mt19937_64 random(8);
  for (const DType dtype : all_dtypes()) {
    if (!can_encode(dtype)) continue;
    const std::size_t size = dtype_bits(dtype) / 8;
    CAPTURE(dtype_name(dtype));
    for (std::size_t length = 0; length <= 40; ++length) {
      std::vector<double> values(length);
      for (double& value : values) {
        // Ordinary numbers among the extreme ones of random bits.
        value = random() % 4 ? static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-60
                             : std::bit_cast<double>(random());
      }
      std::vector<std::byte> whole(length * size + 2, std::byte{0xEE});
      from_double(dtype, values, MutableBytes(whole).subspan(1, length * size));
      for (std::size_t i = 0; i < length; ++i) {
        std::vector<std::byte> one(size);
        from_double(dtype, {&values[i], 1}, one);
        REQUIRE(std::memcmp(one.data(), &whole[1 + i * size], size) == 0);
      }
      REQUIRE(whole.front() == std::byte{0xEE});
      REQUIRE(whole.back() == std::byte{0xEE});
    }
  }
}

TEST_CASE("blocks of the small formats equal their bit-by-bit definition") {
  std::mt19937_64 random(9);
  for (const NamedFormat& named : kSmallFormats) {
    const std::size_t size = dtype_bits(named.dtype) / 8;
    std::vector<double> values(4096);
    for (double& value : values) value = std::bit_cast<double>(random());
    for (std::size_t i = 0; i < values.size(); i += 2) {
      values[i] = static_cast<double>(static_cast<std::int32_t>(random())) * 0x1p-28;
    }
    std::vector<std::byte> codes(values.size() * size);
    from_double(named.dtype, values, codes);
    std::vector<double> back(values.size());
    to_double(named.dtype, codes, back);
    CAPTURE(dtype_name(named.dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, &codes[i * size], size);
      CAPTURE(values[i]);
      REQUIRE(code == encode_number(values[i], named.format));
      REQUIRE(same(back[i], decode_number(code, named.format)));
    }
  }
}

TEST_CASE("F32 rounds once and F64 keeps every bit") {
  std::vector<std::byte> out(4);
  const auto to_f32 = [&](double value) {
    from_double(DType::kF32, {&value, 1}, out);
    float result = 0;
    std::memcpy(&result, out.data(), 4);
    return result;
  };
  CHECK(to_f32(1 + 0x1p-24) == 1.0F);
  CHECK(to_f32(1 + 0x1p-24 + 0x1p-50) == 1.0F + 0x1p-23F);
  CHECK(to_f32(1e39) == std::numeric_limits<float>::infinity());
  CHECK(to_f32(0x1p-149) == 0x1p-149F);
  CHECK(std::isnan(to_f32(std::numeric_limits<double>::quiet_NaN())));
  const double payload = std::bit_cast<double>(0x7FF8000000001234U);
  std::vector<std::byte> wide(8);
  from_double(DType::kF64, {&payload, 1}, wide);
  CHECK(std::memcmp(wide.data(), &payload, 8) == 0);
}

TEST_CASE("exactly the floating-point types with a sign can be written") {
  for (const DType dtype : all_dtypes()) {
    CAPTURE(dtype_name(dtype));
    CHECK(can_encode(dtype) == (is_float(dtype) && dtype != DType::kF8E8M0));
  }
}

TEST_CASE("integers and numbers print in their shortest exact form") {
  CHECK(text_of<std::uint8_t>(DType::kBool, {1}) == "1");
  CHECK(text_of<std::int8_t>(DType::kI8, {-128}) == "-128");
  CHECK(text_of<std::uint32_t>(DType::kU32, {4294967295U}) == "4294967295");
  CHECK(text_of<std::int64_t>(DType::kI64, {std::numeric_limits<std::int64_t>::min()}) ==
        "-9223372036854775808");
  CHECK(text_of<std::uint64_t>(DType::kU64, {~0ULL}) == "18446744073709551615");
  CHECK(text_of<float>(DType::kF32, {0.1F}) == "0.1");
  CHECK(text_of<double>(DType::kF64, {0.1}) == "0.1");
  CHECK(text_of<double>(DType::kF64, {1.0 / 3}) == "0.3333333333333333");
  CHECK(text_of<float>(DType::kC64, {1.5F, -2}) == "1.5,-2");
  CHECK(text_of<std::uint16_t>(DType::kF16, {0x7C00}) == "inf");
  CHECK(text_of<std::uint16_t>(DType::kBF16, {0x8000}) == "-0");
  CHECK(text_of<std::uint8_t>(DType::kF8E4M3, {0x7F}) == "nan");
  CHECK(text_of<std::uint8_t>(DType::kF8E8M0, {0}) == "5.877472e-39");
}

TEST_CASE("every element of the small formats reads back from its text") {
  for (const NamedFormat& named : kSmallFormats) {
    CAPTURE(dtype_name(named.dtype));
    for (std::uint32_t code = 0; code < named.codes; ++code) {
      std::byte bytes[4];
      std::memcpy(bytes, &code, sizeof bytes);
      const std::string text = element_text(named.dtype, bytes);
      const double value = decode_number(code, named.format);
      CAPTURE(text);
      REQUIRE(same(static_cast<double>(std::strtof(text.c_str(), nullptr)), value));
      // Read as a double it may be a little off, and still means this code.
      const double wide = std::strtod(text.c_str(), nullptr);
      REQUIRE((std::isnan(value) || encode_number(wide, named.format) == code));
    }
  }
}

TEST_CASE("random elements of the large formats read back from their text") {
  std::mt19937_64 random(10);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
    const double wide = std::strtod(element_text(DType::kF64, bytes).c_str(), nullptr);
    REQUIRE(same(wide, std::bit_cast<double>(bits)));
    const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const float read = std::strtof(element_text(DType::kF32, bytes).c_str(), nullptr);
    REQUIRE((read == narrow || std::isnan(narrow)));
    REQUIRE(std::stoull(element_text(DType::kU64, bytes)) == bits);
    REQUIRE(std::stoll(element_text(DType::kI64, bytes)) == static_cast<std::int64_t>(bits));
    const auto parts = test::split(element_text(DType::kC64, bytes), ',');
    REQUIRE(parts.size() == 2);
    REQUIRE(parts[0] == element_text(DType::kF32, bytes));
    REQUIRE(parts[1] == element_text(DType::kF32, bytes + 4));
  }
}

}  // namespace
}  // namespace masque
