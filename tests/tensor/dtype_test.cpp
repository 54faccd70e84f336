// Names, sizes and ranks of all types, and the sizes of tensors.
#include "tensor/dtype.hpp"

#include <limits>

#include <doctest/doctest.h>

namespace masque {
namespace {

struct Expected {
  DType dtype;
  const char* name;
  unsigned bits;
  bool is_float;
};

// In the rank order of the reference writer.
constexpr Expected kTypes[] = {
    {DType::kBool, "BOOL", 8, false},
    {DType::kF4, "F4", 4, false},
    {DType::kF6E2M3, "F6_E2M3", 6, false},
    {DType::kF6E3M2, "F6_E3M2", 6, false},
    {DType::kU8, "U8", 8, false},
    {DType::kI8, "I8", 8, false},
    {DType::kF8E5M2, "F8_E5M2", 8, true},
    {DType::kF8E4M3, "F8_E4M3", 8, true},
    {DType::kF8E8M0, "F8_E8M0", 8, true},
    {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8, true},
    {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8, true},
    {DType::kI16, "I16", 16, false},
    {DType::kU16, "U16", 16, false},
    {DType::kF16, "F16", 16, true},
    {DType::kBF16, "BF16", 16, true},
    {DType::kI32, "I32", 32, false},
    {DType::kU32, "U32", 32, false},
    {DType::kF32, "F32", 32, true},
    {DType::kC64, "C64", 64, false},
    {DType::kF64, "F64", 64, true},
    {DType::kI64, "I64", 64, false},
    {DType::kU64, "U64", 64, false},
};

TEST_CASE("every type has its name, size, kind and rank") {
  REQUIRE(all_dtypes().size() == std::size(kTypes));
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    const Expected& type = kTypes[i];
    CAPTURE(type.name);
    CHECK(all_dtypes()[i] == type.dtype);
    CHECK(dtype_name(type.dtype) == type.name);
    CHECK(find_dtype(type.name) == type.dtype);
    CHECK(dtype_bits(type.dtype) == type.bits);
    CHECK(is_packed(type.dtype) == (type.bits < 8));
    CHECK(is_float(type.dtype) == type.is_float);
    if (i > 0) CHECK(kTypes[i - 1].dtype < type.dtype);
  }
}

TEST_CASE("other spellings are no types") {
  for (const char* name : {"", "f32", "F32 ", " F32", "float32", "F", "F8", "F8_E4M3FN", "F128"}) {
    CAPTURE(name);
    CHECK(find_dtype(name) == std::nullopt);
  }
}

TEST_CASE("a shape prints as in the header") {
  CHECK(shape_text({}) == "[]");
  CHECK(shape_text({0}) == "[0]");
  CHECK(shape_text({30522, 768}) == "[30522,768]");
}

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST_CASE("elements are the product of the dimensions") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({7}) == 7);
  CHECK(element_count({2, 3, 5}) == 30);
  CHECK(element_count({0, kMax}) == 0);
  CHECK(element_count({kMax, 1}) == kMax);
}

TEST_CASE("a product that overflows on the way is refused even if it ends at zero") {
  const std::uint64_t big = std::uint64_t{1} << 40;
  CHECK(element_count({big, big}) == std::nullopt);
  CHECK(element_count({big, big, 0}) == std::nullopt);
  CHECK(element_count({0, big, big}) == 0);
  CHECK(element_count({kMax, 2}) == std::nullopt);
}

TEST_CASE("bytes are counted without overflow and without parts of bytes") {
  CHECK(byte_count(DType::kF32, {}) == 4);
  CHECK(byte_count(DType::kBF16, {3, 5}) == 30);
  CHECK(byte_count(DType::kC64, {2}) == 16);
  CHECK(byte_count(DType::kF64, {0, 9}) == 0);
  CHECK(byte_count(DType::kF4, {2}) == 1);
  CHECK(byte_count(DType::kF4, {3}) == std::nullopt);
  CHECK(byte_count(DType::kF6E2M3, {4}) == 3);
  CHECK(byte_count(DType::kF6E3M2, {2}) == std::nullopt);
  CHECK(byte_count(DType::kU8, {kMax}) == std::nullopt);  // the bits do not fit
  CHECK(byte_count(DType::kU8, {kMax / 8}) == kMax / 8);
  CHECK(byte_count(DType::kF64, {std::uint64_t{1} << 58}) == std::nullopt);
  CHECK(byte_count(DType::kF64, {std::uint64_t{1} << 57}) == std::uint64_t{1} << 60);
}

}  // namespace
}  // namespace masque
