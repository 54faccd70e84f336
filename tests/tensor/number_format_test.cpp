// Decoding against the tables of a second implementation, encoding against a search over all codes.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "support/table.hpp"
#include "tensor/convert.hpp"
#include "tensor/formats.hpp"

namespace masque {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// The bytes of all codes of a type in order.
std::vector<std::byte> all_codes(DType dtype) {
  const std::size_t size = dtype_bits(dtype) / 8;
  const std::size_t count = std::size_t{1} << dtype_bits(dtype);
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(size == 1 || i % 2 == 0 ? i / size : i / size >> 8);
  }
  return bytes;
}

std::vector<double> decoded(DType dtype, const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / (dtype_bits(dtype) / 8));
  to_double(dtype, bytes, values);
  return values;
}

std::vector<std::uint32_t> encoded(DType dtype, const std::vector<double>& values) {
  const std::size_t size = dtype_bits(dtype) / 8;
  std::vector<std::byte> bytes(values.size() * size);
  from_double(dtype, values, bytes);
  std::vector<std::uint32_t> codes(values.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint32_t>(bytes[i * size]);
    if (size == 2) codes[i] |= static_cast<std::uint32_t>(bytes[2 * i + 1]) << 8;
  }
  return codes;
}

/// Rounding by looking at all values of a format.
class Search {
 public:
  explicit Search(const NamedFormat& named) : format_(named.format), sign_(named.codes / 2) {
    for (std::uint32_t code = 0; code < sign_; ++code) {
      const double value = decode_number(code, format_);
      if (!std::isfinite(value)) break;
      values_.push_back(value);
    }
    // What would come next in the same step: rounding to it is overflow.
    values_.push_back(2 * values_.back() - values_[values_.size() - 2]);
  }

  const std::vector<double>& values() const { return values_; }

  std::uint32_t nearest(double value) const {
    const bool fnuz = format_.special == SpecialCodes::kFnuz;
    const bool ieee = format_.special == SpecialCodes::kIeee;
    const std::uint32_t sign = std::signbit(value) ? sign_ : 0;
    const auto overflow = static_cast<std::uint32_t>(values_.size() - 1);
    const auto above = std::upper_bound(values_.begin(), values_.end(), std::abs(value));
    auto code = static_cast<std::uint32_t>(above - values_.begin()) - 1;
    if (code < overflow) {
      const double middle = (values_[code] + values_[code + 1]) / 2;  // exact
      if (std::abs(value) > middle || (std::abs(value) == middle && code % 2 == 1)) ++code;
    }
    if (code == overflow) return ieee ? sign | overflow : fnuz ? sign_ : sign | (sign_ - 1);
    return code == 0 && fnuz ? 0 : sign | code;
  }

 private:
  NumberFormat format_;
  std::uint32_t sign_;
  std::vector<double> values_;  ///< of the codes 0, 1, …; one more at the end
};

/// The values at which rounding may go wrong: all values, all middles, and their neighbours.
std::vector<double> hard_values(const Search& search) {
  std::vector<double> hard = {5e-324, 1e-300, 1e300, std::numeric_limits<double>::max(), kInfinity};
  const auto add = [&](double value) {
    hard.insert(hard.end(),
                {value, std::nextafter(value, -kInfinity), std::nextafter(value, kInfinity)});
  };
  const std::vector<double>& values = search.values();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    add(values[i]);
    add((values[i] + values[i + 1]) / 2);
    // A double rounding, through float first, would take these for the middle.
    add((values[i] + values[i + 1]) / 2 * (1 + 0x1p-40));
    add((values[i] + values[i + 1]) / 2 * (1 - 0x1p-40));
  }
  add(values.back());
  for (std::size_t i = 0, n = hard.size(); i < n; ++i) hard.push_back(-hard[i]);
  return hard;
}

TEST_CASE("all codes decode to the values of a second implementation") {
  for (const test::Row& row : test::read_table(MASQUE_TEST_DATA "/number_format/decode.tsv", 3)) {
    const DType dtype = find_dtype(row[0]).value();
    std::vector<float> floats;
    for (const double value : decoded(dtype, all_codes(dtype))) {
      floats.push_back(static_cast<float>(value));
      REQUIRE((std::isnan(value) || static_cast<double>(floats.back()) == value));
      if (std::isnan(value)) floats.back() = std::bit_cast<float>(0x7FC00000);
    }
    CAPTURE(row[0]);
    CHECK(std::to_string(floats.size()) == row[1]);
    const auto hasher = make_xxh3();
    hasher->add(std::as_bytes(std::span(floats)));
    CHECK(hasher->digest() == row[2]);
  }
}

TEST_CASE("floats of all sizes encode to the codes of a second implementation") {
  std::vector<double> values;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    values.push_back(static_cast<double>(std::bit_cast<float>(i * 65536 + i * 40503 % 65536)));
  }
  for (const test::Row& row : test::read_table(MASQUE_TEST_DATA "/number_format/encode.tsv", 3)) {
    const DType dtype = find_dtype(row[0]).value();
    const std::size_t size = dtype_bits(dtype) / 8;
    const std::vector<double> meaning = decoded(dtype, all_codes(dtype));
    const auto hasher = make_xxh3();
    for (std::uint32_t code : encoded(dtype, values)) {
      if (std::isnan(meaning[code])) code = (1U << 8 * size) - 1;
      hasher->add(std::as_bytes(std::span(&code, 1)).first(size));
    }
    CAPTURE(row[0]);
    CHECK(hasher->digest() == row[2]);
  }
}

TEST_CASE("the special values of every format are where its definition puts them") {
  CHECK(decode_number(0x7C00, kF16) == kInfinity);
  CHECK(decode_number(0xFC00, kF16) == -kInfinity);
  CHECK(decode_number(0x7BFF, kF16) == 65504);
  CHECK(decode_number(0x0001, kF16) == 0x1p-24);
  CHECK(std::isnan(decode_number(0x7C01, kF16)));
  CHECK(same_number(decode_number(0x8000, kF16), -0.0));
  CHECK(decode_number(0x7F80, kBF16) == kInfinity);
  CHECK(decode_number(0x0001, kBF16) == 0x1p-133);
  CHECK(decode_number(0x7E, kF8E4M3) == 448);
  CHECK(std::isnan(decode_number(0x7F, kF8E4M3)));
  CHECK(std::isnan(decode_number(0xFF, kF8E4M3)));
  CHECK(decode_number(0x7B, kF8E5M2) == 57344);
  CHECK(decode_number(0x7C, kF8E5M2) == kInfinity);
  CHECK(decode_number(0x7F, kF8E4M3Fnuz) == 240);
  CHECK(std::isnan(decode_number(0x80, kF8E4M3Fnuz)));
  CHECK(decode_number(0x7F, kF8E5M2Fnuz) == 57344);
  CHECK(std::isnan(decode_number(0x80, kF8E5M2Fnuz)));
  CHECK(decode_e8m0(127) == 1);
  CHECK(decode_e8m0(0) == 0x1p-127);
  CHECK(decode_e8m0(254) == 0x1p127);
  CHECK(std::isnan(decode_e8m0(255)));
}

TEST_CASE("every code that is a number encodes back to itself") {
  for (const NamedFormat& named : kSmallFormats) {
    const std::vector<double> values = decoded(named.dtype, all_codes(named.dtype));
    const std::vector<std::uint32_t> codes = encoded(named.dtype, values);
    CAPTURE(dtype_name(named.dtype));
    for (std::uint32_t code = 0; code < named.codes; ++code) {
      CAPTURE(code);
      REQUIRE(same_number(values[code], decode_number(code, named.format)));
      if (std::isnan(values[code])) {
        REQUIRE(std::isnan(values[codes[code]]));
      } else {
        REQUIRE(codes[code] == code);
        REQUIRE(encode_number(values[code], named.format) == code);
      }
    }
  }
}

TEST_CASE("encoding takes the nearest code with ties to even at every value and middle") {
  for (const NamedFormat& named : kSmallFormats) {
    const Search search(named);
    const std::vector<double> values = hard_values(search);
    const std::vector<std::uint32_t> codes = encoded(named.dtype, values);
    CAPTURE(dtype_name(named.dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t expected = search.nearest(values[i]);
      if (codes[i] == expected && encode_number(values[i], named.format) == expected) continue;
      FAIL_CHECK(fmt::format("{:a}: block {:#x}, scalar {:#x}, expected {:#x}", values[i], codes[i],
                             encode_number(values[i], named.format), expected));
    }
  }
}

TEST_CASE("encoding takes the nearest code of random values") {
  std::mt19937_64 random(3);
  for (const NamedFormat& named : kSmallFormats) {
    const Search search(named);
    std::vector<double> values;
    for (int i = 0; i < 100'000; ++i) {
      // Of all magnitudes that the format knows, and some beyond.
      const double fraction = std::bit_cast<double>(random() >> 12 | 0x3FF0000000000000ULL);
      const int range = 1 << (named.format.exponent_bits - 1);
      const int exponent = static_cast<int>(random() % static_cast<unsigned>(2 * range + 16));
      values.push_back(std::ldexp(random() % 2 ? fraction : -fraction, exponent - range - 12));
    }
    const std::vector<std::uint32_t> codes = encoded(named.dtype, values);
    CAPTURE(dtype_name(named.dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(values[i]);
      REQUIRE(codes[i] == search.nearest(values[i]));
    }
  }
}

TEST_CASE("a value just above a middle is not rounded twice") {
  CHECK(encode_number(1 + 0x1p-11, kF16) == 0x3C00);  // the middle goes to even
  CHECK(encode_number(1 + 0x1p-11 + 0x1p-40, kF16) == 0x3C01);
  CHECK(encode_number(1 + 0x1p-8 + 0x1p-40, kBF16) == 0x3F81);
  CHECK(encode_number(1 + 3 * 0x1p-8 - 0x1p-40, kBF16) == 0x3F81);
  CHECK(encode_number(0x1p-25 + 0x1p-70, kF16) == 0x0001);  // at the least subnormal
  CHECK(encode_number(0x1p-25, kF16) == 0x0000);
}

TEST_CASE("NaN of any sign and payload stays NaN") {
  for (const std::uint64_t bits : {0x7FF8000000000000U, 0xFFF8000000000000U, 0x7FF0000000000001U,
                                   0x7FFFFFFFFFFFFFFFU, 0xFFFFFFFFFFFFFFFFU, 0x7FF0000020000000U}) {
    const double nan = std::bit_cast<double>(bits);
    for (const NamedFormat& named : kSmallFormats) {
      CAPTURE(dtype_name(named.dtype));
      CHECK(std::isnan(decode_number(encode_number(nan, named.format), named.format)));
      CHECK(std::isnan(decode_number(encoded(named.dtype, {nan})[0], named.format)));
    }
  }
}

TEST_CASE("beyond the largest number is infinity or NaN, by the format") {
  CHECK(encode_number(65519.99, kF16) == 0x7BFF);
  CHECK(encode_number(65520, kF16) == 0x7C00);
  CHECK(encode_number(-65520, kF16) == 0xFC00);
  CHECK(encode_number(464, kF8E4M3) == 0x7E);
  CHECK(encode_number(464.001, kF8E4M3) == 0x7F);
  CHECK(encode_number(-kInfinity, kF8E4M3) == 0xFF);
  CHECK(encode_number(61440, kF8E5M2) == 0x7C);
  CHECK(encode_number(247.999, kF8E4M3Fnuz) == 0x7F);
  CHECK(encode_number(248, kF8E4M3Fnuz) == 0x80);
  CHECK(encode_number(kInfinity, kF8E5M2Fnuz) == 0x80);
  CHECK(encode_number(kNan, kF8E5M2Fnuz) == 0x80);
  CHECK(encode_number(-0.0, kF8E4M3Fnuz) == 0x00);
  CHECK(encode_number(-1e-30, kF8E4M3Fnuz) == 0x00);
  CHECK(encode_number(-1e-30, kF8E4M3) == 0x80);
}

}  // namespace
}  // namespace masque
