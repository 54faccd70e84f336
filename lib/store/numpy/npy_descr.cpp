#include "store/numpy/npy_descr.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/escape.hpp"

namespace masque::store {

namespace {

using namespace std::string_view_literals;

struct Spelled {
  DType dtype;
  std::string_view descr;
};

constexpr std::array kSpellings{
    Spelled{DType::kBool, "|b1"sv}, Spelled{DType::kI8, "|i1"sv},  Spelled{DType::kI16, "<i2"sv},
    Spelled{DType::kI32, "<i4"sv},  Spelled{DType::kI64, "<i8"sv}, Spelled{DType::kU8, "|u1"sv},
    Spelled{DType::kU16, "<u2"sv},  Spelled{DType::kU32, "<u4"sv}, Spelled{DType::kU64, "<u8"sv},
    Spelled{DType::kF16, "<f2"sv},  Spelled{DType::kF32, "<f4"sv}, Spelled{DType::kF64, "<f8"sv},
    Spelled{DType::kC64, "<c8"sv},
};

/// What a type that we do not read is, in words; nothing if NumPy would not write it either.
std::string_view kind_of_descr(std::string_view type) {
  if (type == "c16") return "complex128";
  if (type == "f12" || type == "f16" || type == "c24" || type == "c32") return "long double";
  if (type == "V2") return "raw bytes in which ml_dtypes saves bfloat16";
  if (type == "V1") return "raw bytes in which ml_dtypes saves 8-bit floats";
  if (type.starts_with('V')) return "raw bytes";
  if (type.starts_with('U') || type.starts_with('S') || type.starts_with('a')) return "text";
  if (type.starts_with('M') || type.starts_with('m')) return "dates or times";
  return {};
}

}  // namespace

Checked<NpyType> parse_npy_descr(std::string_view descr) {
  std::string_view type = descr;
  if (!type.empty() && "<>=|"sv.find(type[0]) != std::string_view::npos) type.remove_prefix(1);
  for (const auto& [dtype, known] : kSpellings) {
    if (known.substr(1) == type) {
      return NpyType{dtype, descr.starts_with('>') && dtype_bits(dtype) > 8};
    }
  }
  if (type.starts_with('O')) {
    return Violation{"object-array", "an array of Python objects, which is a pickle: never read"};
  }
  const std::string_view kind = kind_of_descr(type);
  if (kind.empty()) {
    return Violation{"unknown-dtype", fmt::format("descr '{}' is not a known type", escape(descr))};
  }
  return Violation{
      "unsupported-dtype",
      fmt::format("'{}' ({}), expected booleans, integers, f2, f4, f8 or c8", escape(descr), kind)};
}

std::optional<std::string_view> npy_descr(DType dtype) {
  for (const Spelled& spelling : kSpellings) {
    if (spelling.dtype == dtype) return spelling.descr;
  }
  return std::nullopt;
}

}  // namespace masque::store
