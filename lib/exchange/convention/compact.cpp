// Conventions that hold runs or bits instead of cells.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "exchange/convention.hpp"
#include "exchange/mask_text.hpp"
#include "mask/compare.hpp"
#include "mask/identify.hpp"
#include "mask/zoo.hpp"
#include "tensor/convert.hpp"

namespace masque::exchange {

namespace {

/// An array that exists already.
template <class T>
MatrixSource source_of(DType dtype, Shape shape, std::vector<T> values) {
  const auto shared = std::make_shared<const std::vector<T>>(std::move(values));
  return {dtype, std::move(shape), [shared](std::uint64_t offset, MutableBytes out) {
            if (out.empty()) return;
            std::memcpy(out.data(), reinterpret_cast<const std::byte*>(shared->data()) + offset,
                        out.size());
          }};
}

/// All elements as whole numbers from 0 to 2^40.
std::vector<Index> whole_numbers(const store::Array& array, const std::string& path) {
  if (is_packed(array.dtype) || components(array.dtype) != 1) {
    throw InputError(
        path, fmt::format("an array of {}, expected whole numbers", dtype_name(array.dtype)));
  }
  std::vector<double> values(array.data.size() / (dtype_bits(array.dtype) / 8));
  to_double(array.dtype, array.data, values);
  std::vector<Index> numbers;
  numbers.reserve(values.size());
  for (const double value : values) {
    if (!(value >= 0 && value <= 0x1p40) ||
        value != static_cast<double>(static_cast<Index>(value))) {
      throw InputError(path, fmt::format("found {}, expected whole numbers from 0", value));
    }
    numbers.push_back(static_cast<Index>(value));
  }
  return numbers;
}

[[noreturn]] void refuse_cu_seqlens(const Shape& shape, const DecodeRequest& request) {
  throw InputError(
      request.path,
      fmt::format("shape {}, expected a list that begins with 0 and rises", shape_text(shape)));
}

void check_cu_seqlens(DType, const Shape& shape, const DecodeRequest& request) {
  const auto lengths =
      shape.size() - static_cast<std::size_t>(std::count(shape.begin(), shape.end(), 1U));
  if (lengths > 1) refuse_cu_seqlens(shape, request);
}

mask::BitMatrix decode_cu_seqlens(const store::Array& array, const DecodeRequest& request) {
  check_cu_seqlens(array.dtype, array.shape, request);
  const std::vector<Index> ends = whole_numbers(array, request.path);
  if (ends.empty() || ends.front() != 0 || !std::is_sorted(ends.begin(), ends.end()))
    refuse_cu_seqlens(array.shape, request);
  const Index n = ends.back();
  mask::BitMatrix bits(n, n);
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    for (Index q = ends[i]; q < ends[i + 1]; ++q) {
      for (Index k = ends[i]; k < ends[i + 1]; ++k) bits.set(q, k);
    }
  }
  return bits;
}

MatrixSource encode_cu_seqlens(const mask::Mask& mask, const std::string& path) {
  const mask::Lengths lengths = mask.lengths();
  if (lengths.queries != lengths.keys) {
    throw InputError(path, fmt::format("cu_seqlens of {} queries and {} keys, expected as many",
                                       lengths.queries, lengths.keys));
  }
  if (lengths.queries > INT32_MAX) {
    throw InputError(path, fmt::format("cu_seqlens of {} tokens, expected at most {}",
                                       lengths.queries, INT32_MAX));
  }
  const auto documents = mask::enclosing_documents(mask);
  const mask::MaskExpression expression = documents ? *documents : mask::parse_mask("full");
  const mask::MaskDifference difference = mask::compare_masks(expression.bind(lengths), mask);
  if (difference.first) {
    throw InputError(path, fmt::format("cu_seqlens can describe only documents that read all of "
                                       "themselves; query {} does not read key {} of its document",
                                       difference.first->query, difference.first->key));
  }
  std::vector<std::int32_t> ends = {0};
  if (lengths.queries == 0) return source_of(DType::kI32, {1}, std::move(ends));
  const std::vector<Index> sizes = documents ? mask::mask_values(documents->named()).numbers()
                                             : std::vector<Index>{lengths.queries};
  for (const Index size : sizes) {
    ends.push_back(static_cast<std::int32_t>(ends.back() + size));
  }
  const Shape shape = {ends.size()};
  return source_of(DType::kI32, shape, std::move(ends));
}

const Convention kCuSeqlens{
    "cu_seqlens",
    "[documents + 1], where documents begin and end: FlashAttention's varlen",
    "",
    check_cu_seqlens,
    decode_cu_seqlens,
    encode_cu_seqlens,
    0};
const ConventionRegistration kCuSeqlensRegistration{kCuSeqlens};

void check_intervals(DType, const Shape& shape, const DecodeRequest& request) {
  if (shape.size() == 2 && (shape[1] == 3 || shape[0] == 0)) return;
  throw InputError(request.path,
                   fmt::format("shape {}, expected rows of query, begin, end", shape_text(shape)));
}

mask::BitMatrix decode_intervals(const store::Array& array, const DecodeRequest& request) {
  check_intervals(array.dtype, array.shape, request);
  const std::vector<Index> numbers = whole_numbers(array, request.path);
  if (!request.lengths)
    throw UsageError(
        fmt::format("intervals do not contain the length of the mask: add {}", field("length")));
  const mask::Lengths lengths = *request.lengths;
  mask::BitMatrix bits(lengths.queries, lengths.keys);
  for (std::size_t i = 0; i + 2 < numbers.size(); i += 3) {
    const Index query = numbers[i];
    if (query >= lengths.queries || numbers[i + 2] > lengths.keys ||
        numbers[i + 1] > numbers[i + 2]) {
      throw InputError(request.path,
                       fmt::format("query {} keys {} to {}, expected a run within {} × {}", query,
                                   numbers[i + 1], numbers[i + 2], lengths.queries, lengths.keys));
    }
    for (Index key = numbers[i + 1]; key < numbers[i + 2]; ++key) bits.set(query, key);
  }
  return bits;
}

MatrixSource encode_intervals(const mask::Mask& mask, const std::string&) {
  std::vector<Index> rows;
  for (Index q = 0; q < mask.lengths().queries; ++q) {
    for_each_run(mask, q, [&](Index begin, Index end) {
      rows.insert(rows.end(), {q, begin, end});
    });
  }
  const Shape shape = {rows.size() / 3, 3};
  return source_of(DType::kI64, shape, std::move(rows));
}

const Convention kIntervals{
    "intervals",
    "[runs, 3], rows of query, begin, end: runs of visible keys, end excluded",
    "query\tbegin\tend",
    check_intervals,
    decode_intervals,
    encode_intervals,
    0};
const ConventionRegistration kIntervalsRegistration{kIntervals};

void check_packed(DType, const Shape& shape, const DecodeRequest& request) {
  if (shape.size() == 2) return;
  throw InputError(request.path,
                   fmt::format("shape {}, expected rows of bytes", shape_text(shape)));
}

mask::BitMatrix decode_packed(const store::Array& array, const DecodeRequest& request) {
  check_packed(array.dtype, array.shape, request);
  const std::vector<Index> bytes = whole_numbers(array, request.path);
  const auto rows = static_cast<Index>(array.shape[0]);
  const auto width = static_cast<Index>(array.shape[1]);
  if (!request.lengths)
    throw UsageError(
        fmt::format("packed bits do not contain the number of keys: add {}", field("length")));
  const Index keys = request.lengths->keys;
  if (divide_up(keys, 8) != width) {
    throw InputError(request.path, fmt::format("{} bytes a row, expected {} for {} keys", width,
                                               divide_up(keys, 8), keys));
  }
  mask::BitMatrix bits(rows, keys);
  for (Index q = 0; q < rows; ++q) {
    for (Index k = 0; k < width * 8; ++k) {
      const Index byte = bytes[static_cast<std::size_t>(q * width + k / 8)];
      if (byte > 255) {
        throw InputError(request.path, fmt::format("found {}, expected bytes", byte));
      }
      if ((byte >> (k % 8) & 1) == 0) continue;
      if (k >= keys) {
        throw InputError(request.path, fmt::format("query {}: a bit after its {} keys", q, keys));
      }
      bits.set(q, k);
    }
  }
  return bits;
}

MatrixSource encode_packed(const mask::Mask& mask, const std::string&) {
  const mask::Lengths lengths = mask.lengths();
  const auto width = static_cast<std::uint64_t>(divide_up(lengths.keys, 8));
  const auto fill = [mask, width](std::uint64_t offset, MutableBytes out) {
    for (std::byte& byte : out) {
      const auto key = static_cast<Index>(offset % width * 8);
      const int n = static_cast<int>(std::min<Index>(8, mask.lengths().keys - key));
      byte = static_cast<std::byte>(mask.bits(static_cast<Index>(offset / width), key, n));
      ++offset;
    }
  };
  return {DType::kU8, {static_cast<std::uint64_t>(lengths.queries), width}, fill};
}

const Convention kPacked{
    "packed",
    "[queries, keys / 8], a bit for each key, the first in the lowest bit of a byte",
    "",
    check_packed,
    decode_packed,
    encode_packed,
    1};
const ConventionRegistration kPackedRegistration{kPacked};

}  // namespace

}  // namespace masque::exchange
