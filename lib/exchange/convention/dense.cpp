// Conventions with a number for every cell.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "exchange/convention.hpp"
#include "exchange/mask_text.hpp"
#include "tensor/convert.hpp"

namespace masque::exchange {

namespace {

/// What two values of an element mean.
struct Coding {
  DType dtype;
  std::array<std::byte, 4> visible;
  std::array<std::byte, 4> blocked;
  std::size_t leading_ones;  ///< dimensions of size 1 before queries and keys
};

std::array<std::byte, 4> bytes_of(float value) {
  return std::bit_cast<std::array<std::byte, 4>>(value);
}

MatrixSource encode(const mask::Mask& mask, const Coding& coding) {
  const auto [queries, keys] = mask.lengths();
  Shape shape(coding.leading_ones, 1);
  shape.push_back(static_cast<std::uint64_t>(queries));
  shape.push_back(static_cast<std::uint64_t>(keys));
  const auto fill = [mask, coding](std::uint64_t offset, MutableBytes out) {
    const std::size_t element = dtype_bits(coding.dtype) / 8;
    const auto columns = static_cast<std::uint64_t>(mask.lengths().keys);
    std::uint64_t cell = offset / element;
    for (std::byte* to = out.data(); to < out.data() + out.size();) {
      const auto query = static_cast<Index>(cell / columns);
      const auto key = static_cast<Index>(cell % columns);
      const auto rest =
          static_cast<Index>((out.data() + out.size() - to) / static_cast<std::ptrdiff_t>(element));
      const int n = static_cast<int>(std::min({Index{64}, mask.lengths().keys - key, rest}));
      const std::uint64_t word = mask.bits(query, key, n);
      for (int i = 0; i < n; ++i, to += element) {
        std::memcpy(to, ((word >> i & 1) != 0 ? coding.visible : coding.blocked).data(), element);
      }
      cell += static_cast<std::uint64_t>(n);
    }
  };
  return {coding.dtype, std::move(shape), fill};
}

/// Says of a value: visible, blocked, or neither.
using Meaning = std::optional<bool> (*)(double value);

std::optional<bool> zero_or_one(double value) {
  return value == 0 || value == 1 ? std::optional(value == 1) : std::nullopt;
}

/// 0, or a bias that no score survives.
std::optional<bool> bias(double value) {
  if (value == 0) return true;
  return value <= -1e4 * 0.99 ? std::optional(false) : std::nullopt;
}

/// Numbers for the scores are a mask, too, of another convention.
std::string hint_for(double value, Meaning meaning) {
  if (meaning == bias || !bias(value)) return "";
  return fmt::format(
      "; mask-viz convert {} hf {} allow changes numbers that are added to scores into such a mask",
      field("from"), field("to"));
}

/// The mask that is wanted of those in the array.
std::uint64_t item_of(const DecodeRequest& request) {
  return static_cast<std::uint64_t>(request.item.value_or(0));
}

/// Throws InputError for a shape or type that has no mask.
void check(DType dtype, const Shape& shape, const DecodeRequest& request, Meaning meaning) {
  if (shape.size() < 2) {
    throw InputError(request.path, fmt::format("an array of shape {}, expected queries × keys",
                                               shape_text(shape)));
  }
  std::uint64_t masks = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) masks *= shape[i];
  if (masks != 1 && !request.item) {
    throw InputError(request.path,
                     fmt::format("{} masks in shape {}, expected one: choose one with mask-viz "
                                 "convert {} ITEM",
                                 masks, shape_text(shape), field("item")));
  }
  const std::uint64_t item = item_of(request);
  if (item >= masks) {
    throw InputError(request.path, fmt::format("{} masks in shape {}, no item {}", masks,
                                               shape_text(shape), item));
  }
  if (is_packed(dtype) || components(dtype) != 1) {
    throw InputError(request.path,
                     fmt::format("an array of {}, expected numbers", dtype_name(dtype)));
  }
  if (meaning == bias && dtype == DType::kBool) {
    throw InputError(request.path,
                     "true and false, expected numbers that are added to scores; "
                     "for booleans see the conventions allow and forbid");
  }
  check_has_cells(shape[shape.size() - 2], shape.back(), request.path);
}

mask::BitMatrix decode(const store::Array& array, const DecodeRequest& request, Meaning meaning,
                       bool one_is_visible, const char* expected) {
  const Shape& shape = array.shape;
  check(array.dtype, shape, request, meaning);
  const std::uint64_t item = item_of(request);
  const std::uint64_t queries = shape[shape.size() - 2];
  const std::uint64_t keys = shape.back();
  mask::BitMatrix bits(static_cast<Index>(queries), static_cast<Index>(keys));
  const std::size_t element = dtype_bits(array.dtype) / 8;
  // Piece by piece: a row may have billions of keys.
  std::vector<double> piece(std::min<std::uint64_t>(keys, 4096));
  for (std::uint64_t cell = 0; cell < queries * keys;) {
    const std::uint64_t q = cell / keys;
    const std::uint64_t first = cell % keys;
    const std::span<double> values = std::span(piece).first(std::min(piece.size(), keys - first));
    const std::byte* begin = array.data.data() + (item * queries * keys + cell) * element;
    to_double(array.dtype, Bytes(begin, values.size() * element), values);
    for (std::uint64_t k = first; k < first + values.size(); ++k) {
      const double value = values[k - first];
      const std::optional<bool> visible = meaning(value);
      if (!visible) {
        throw InputError(request.path, fmt::format("query {} key {}: found {}, expected {}{}", q, k,
                                                   value, expected, hint_for(value, meaning)));
      }
      if (*visible == one_is_visible) bits.set(static_cast<Index>(q), static_cast<Index>(k));
    }
    cell += values.size();
  }
  return bits;
}

constexpr std::byte kZero{0};
constexpr std::byte kOne{1};
constexpr const char* kZeroOrOne = "0 or 1";
constexpr const char* kBias = "0, or -10000 or less";

const Convention kAllow{
    "allow",
    "[queries, keys], 1: the query may read the key; PyTorch's scaled_dot_product_attention, numpy",
    "",
    [](DType d, const Shape& s, const DecodeRequest& r) { check(d, s, r, zero_or_one); },
    [](const store::Array& a, const DecodeRequest& r) {
      return decode(a, r, zero_or_one, true, kZeroOrOne);
    },
    [](const mask::Mask& m, const std::string&) {
      return encode(m, {DType::kBool, {kOne}, {kZero}, 0});
    },
    8,
    true};
const ConventionRegistration kAllowRegistration{kAllow};

const Convention kForbid{
    "forbid",
    "[queries, keys], 1: the query may not read the key; PyTorch's nn.MultiheadAttention",
    "",
    [](DType d, const Shape& s, const DecodeRequest& r) { check(d, s, r, zero_or_one); },
    [](const store::Array& a, const DecodeRequest& r) {
      return decode(a, r, zero_or_one, false, kZeroOrOne);
    },
    [](const mask::Mask& m, const std::string&) {
      return encode(m, {DType::kBool, {kZero}, {kOne}, 0});
    },
    8,
    true};
const ConventionRegistration kForbidRegistration{kForbid};

const Convention kAdditive{
    "additive",
    "[queries, keys], added to the scores: 0 may be read, -inf may not (input: -10000 or less)",
    "",
    [](DType d, const Shape& s, const DecodeRequest& r) { check(d, s, r, bias); },
    [](const store::Array& a, const DecodeRequest& r) { return decode(a, r, bias, true, kBias); },
    [](const mask::Mask& m, const std::string&) {
      const float infinity = std::numeric_limits<float>::infinity();
      return encode(m, {DType::kF32, bytes_of(0), bytes_of(-infinity), 0});
    },
    32,
    true};
const ConventionRegistration kAdditiveRegistration{kAdditive};

const Convention kHf{
    "hf",
    "[batch, 1, queries, keys], transformers, added to the scores: 0 may be read, the type's "
    "lowest number may not",
    "",
    [](DType d, const Shape& s, const DecodeRequest& r) { check(d, s, r, bias); },
    [](const store::Array& a, const DecodeRequest& r) { return decode(a, r, bias, true, kBias); },
    [](const mask::Mask& m, const std::string&) {
      const float least = std::numeric_limits<float>::lowest();
      return encode(m, {DType::kF32, bytes_of(0), bytes_of(least), 2});
    },
    32,
    true};
const ConventionRegistration kHfRegistration{kHf};

const Convention kPermMask{
    "perm_mask",
    "[batch, queries, keys], 1: the query may not read the key; XLNet in transformers",
    "",
    [](DType d, const Shape& s, const DecodeRequest& r) { check(d, s, r, zero_or_one); },
    [](const store::Array& a, const DecodeRequest& r) {
      return decode(a, r, zero_or_one, false, kZeroOrOne);
    },
    [](const mask::Mask& m, const std::string&) {
      return encode(m, {DType::kF32, bytes_of(0), bytes_of(1), 1});
    },
    32,
    true};
const ConventionRegistration kPermMaskRegistration{kPermMask};

}  // namespace

}  // namespace masque::exchange
