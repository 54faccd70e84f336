#include "tensor/dtype.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.hpp"

namespace masque {

namespace {

struct Info {
  DType dtype;
  std::string_view name;
  unsigned bits;
};

constexpr std::array<Info, 22> kTypes{{
    {DType::kBool, "BOOL", 8},
    {DType::kF4, "F4", 4},
    {DType::kF6E2M3, "F6_E2M3", 6},
    {DType::kF6E3M2, "F6_E3M2", 6},
    {DType::kU8, "U8", 8},
    {DType::kI8, "I8", 8},
    {DType::kF8E5M2, "F8_E5M2", 8},
    {DType::kF8E4M3, "F8_E4M3", 8},
    {DType::kF8E8M0, "F8_E8M0", 8},
    {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {DType::kI16, "I16", 16},
    {DType::kU16, "U16", 16},
    {DType::kF16, "F16", 16},
    {DType::kBF16, "BF16", 16},
    {DType::kI32, "I32", 32},
    {DType::kU32, "U32", 32},
    {DType::kF32, "F32", 32},
    {DType::kC64, "C64", 64},
    {DType::kF64, "F64", 64},
    {DType::kI64, "I64", 64},
    {DType::kU64, "U64", 64},
}};

constexpr auto kOrder = [] {
  std::array<DType, kTypes.size()> order{};
  for (std::size_t i = 0; i < kTypes.size(); ++i) order[i] = kTypes[i].dtype;
  return order;
}();

const Info& info(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

std::optional<DType> find_dtype(std::string_view name) {
  for (const Info& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  return std::nullopt;
}

std::span<const DType> all_dtypes() { return kOrder; }

unsigned dtype_bits(DType dtype) { return info(dtype).bits; }

bool is_float(DType dtype) {
  return info(dtype).name[0] == 'F' && !is_packed(dtype) ? true : dtype == DType::kBF16;
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::optional<std::uint64_t> element_count(const Shape& shape) {
  std::optional<std::uint64_t> product = 1;
  for (const std::uint64_t dimension : shape) {
    if (product) product = checked_multiply(*product, dimension);
  }
  return product;
}

std::optional<std::uint64_t> byte_count(DType dtype, const Shape& shape) {
  auto bits = element_count(shape);
  if (bits) bits = checked_multiply(*bits, dtype_bits(dtype));
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

}  // namespace masque
