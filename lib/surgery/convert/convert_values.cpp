#include "surgery/convert/convert_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/numpy/npy.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

void Overflow::note(const std::string& tensor) {
  const std::lock_guard lock(mutex_);
  if (first_.empty() || tensor < first_) first_ = tensor;
}

namespace {

constexpr std::uint64_t kChunkElements = 1 << 17;

/// Largest finite value of a type that can be encoded.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3: return 448;
    case DType::kF8E4M3Fnuz: return 240;
    case DType::kF8E5M2:
    case DType::kF8E5M2Fnuz: return 57344;
    case DType::kF16: return 65504;
    case DType::kBF16: return 0x1.FEp127;
    case DType::kF32: return 0x1.FFFFFEp127;
    default: return std::numeric_limits<double>::max();
  }
}

bool has_infinity(DType dtype) {
  return dtype != DType::kF8E4M3 && dtype != DType::kF8E4M3Fnuz && dtype != DType::kF8E5M2Fnuz;
}

/// Doubles into a narrower type; true if a value cannot be held: a finite one that is too large, or
/// an infinity where the type has none.
bool encode(DType dtype, std::span<double> values, OverflowPolicy policy, MutableBytes out) {
  const double largest = largest_of(dtype);
  const bool infinity = has_infinity(dtype);
  const auto beyond = [&](double value) {
    return std::abs(value) > largest && (std::isfinite(value) || !infinity);
  };
  const bool suspicious = std::any_of(values.begin(), values.end(), beyond);
  if (suspicious && policy == OverflowPolicy::kSaturate) {
    for (double& value : values) {
      if (beyond(value)) value = std::copysign(largest, value);
    }
  }
  from_double(dtype, values, out);
  if (!suspicious || policy == OverflowPolicy::kSaturate) return false;
  // Values just above the largest may still round down to it.
  std::vector<double> back(values.size());
  to_double(dtype, out, back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (beyond(values[i]) && !std::isfinite(back[i])) return true;
  }
  return false;
}

}  // namespace

ReadFunction plain_values(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor) {
  return [&checkpoint, &tensor](std::uint64_t offset, MutableBytes out) {
    checkpoint.read(tensor, offset, out);
  };
}

ReadFunction transposed_values(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor,
                               std::shared_ptr<store::UnpackedTensor> last) {
  MASQUE_CHECK(tensor.shape.size() == 2 && dtype_bits(tensor.dtype) % 8 == 0);
  const auto fill = [&checkpoint, &tensor](MutableBytes out) {
    // Its rows are the columns of what is wanted: the order that NumPy calls Fortran's.
    const store::NpyHeader header{.dtype = tensor.dtype,
                                  .shape = {tensor.shape[1], tensor.shape[0]},
                                  .fortran_order = true,
                                  .big_endian = false,
                                  .data_begin = 0,
                                  .data_bytes = tensor.bytes(),
                                  .notes = {}};
    std::uint64_t at = 0;
    const auto source = [&](MutableBytes part) -> std::optional<store::Violation> {
      checkpoint.read(tensor, at, part);
      at += part.size();
      return std::nullopt;
    };
    store::read_npy_elements(header, source, out);
  };
  return [&tensor, fill, last = std::move(last)](std::uint64_t offset, MutableBytes out) {
    last->read(&tensor, tensor.bytes(), offset, out, fill);
  };
}

store::Computed converted_values(ReadFunction read, DType from, DType to, OverflowPolicy policy,
                                 const std::string& name, Overflow& overflow) {
  const std::uint64_t from_bytes = dtype_bits(from) / 8;
  const std::uint64_t to_bytes = dtype_bits(to) / 8;
  store::Computed source;
  source.chunk_bytes = kChunkElements * to_bytes;
  source.fill = [read = std::move(read), from, to, policy, name, &overflow, from_bytes, to_bytes](
                    std::uint64_t offset, MutableBytes out) {
    thread_local std::vector<std::byte> bytes;
    thread_local std::vector<double> values;
    bytes.resize(out.size() / to_bytes * from_bytes);
    values.resize(out.size() / to_bytes);
    read(offset / to_bytes * from_bytes, bytes);
    to_double(from, bytes, values);
    if (encode(to, values, policy, out)) overflow.note(name);
  };
  return source;
}

}  // namespace masque::surgery
