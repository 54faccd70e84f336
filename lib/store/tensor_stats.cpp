#include "store/tensor_stats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kBlock = 1 << 16;  // elements

struct Moments {
  TensorStats stats;
  double squares = 0;  // Σ (x − mean)²
  double norm_squares = 0;
};

Moments moments_of(std::span<const double> values) {
  Moments m;
  TensorStats& s = m.stats;
  double sum = 0;
  s.minimum = std::numeric_limits<double>::infinity();
  s.maximum = -s.minimum;
  for (const double x : values) {
    if (std::isnan(x)) {
      ++s.nans;
    } else if (std::isinf(x)) {
      ++s.infinities;
    } else {
      ++s.count;
      sum += x;
      s.zeros += x == 0;
      s.minimum = std::min(s.minimum, x);
      s.maximum = std::max(s.maximum, x);
      m.norm_squares += x * x;
    }
  }
  if (s.count == 0) return m;
  s.mean = sum / static_cast<double>(s.count);
  for (const double x : values) {
    if (std::isfinite(x)) m.squares += (x - s.mean) * (x - s.mean);
  }
  return m;
}

/// Chan, Golub and LeVeque 1979: moments of two parts to those of the whole.
void add(Moments& a, const Moments& b) {
  TensorStats& s = a.stats;
  const TensorStats& t = b.stats;
  s.nans += t.nans;
  s.infinities += t.infinities;
  s.zeros += t.zeros;
  a.norm_squares += b.norm_squares;
  if (t.count == 0) return;
  const auto n = static_cast<double>(s.count);
  const auto m = static_cast<double>(t.count);
  const double delta = t.mean - s.mean;
  a.squares += b.squares + delta * delta * n * m / (n + m);
  s.mean += delta * m / (n + m);
  s.minimum = std::min(s.minimum, t.minimum);
  s.maximum = std::max(s.maximum, t.maximum);
  s.count += t.count;
}

std::uint64_t blocks_of(std::uint64_t elements) { return divide_up(elements, kBlock); }

/// The values of one block, decoded.
std::span<const double> read_block(const Checkpoint& checkpoint, const TensorInfo& tensor,
                                   std::uint64_t block, std::vector<std::byte>& bytes,
                                   std::vector<double>& values) {
  const std::uint64_t each = dtype_bits(tensor.dtype) / 8;
  const std::uint64_t begin = block * kBlock;
  const std::uint64_t count = std::min(kBlock, tensor.elements() - begin);
  bytes.resize(count * each);
  values.resize(count * components(tensor.dtype));
  checkpoint.read(tensor, begin * each, bytes);
  to_double(tensor.dtype, bytes, values);
  return values;
}

struct Compare {
  Tolerance tolerance;
  bool bits;  // equal types and no tolerance

  void element(double a, double b, bool same_bits, std::uint64_t index, TensorDiff& out) const {
    if (same_bits) return;
    const bool both_nan = std::isnan(a) && std::isnan(b);
    double distance = std::abs(a - b);
    if (a == b || both_nan) distance = 0;
    if (std::isnan(distance)) distance = std::numeric_limits<double>::infinity();
    const double larger = std::max(std::abs(a), std::abs(b));
    const bool near =
        distance == 0 || (std::isfinite(distance) &&
                          distance <= tolerance.absolute + tolerance.relative * std::abs(b));
    if (!bits && (near || both_nan)) return;
    // The parts of a complex number come one after the other and count once.
    if (out.count == 0) out.first = index;
    if (out.count == 0 || out.last != index) ++out.count;
    out.last = index;
    out.max_absolute = std::max(out.max_absolute, distance);
    if (std::isinf(distance)) {
      out.max_relative = distance;
    } else if (distance > 0 && larger > 0) {
      out.max_relative = std::max(out.max_relative, distance / larger);
    }
  }
};

/// Sums over the elements of both tensors.
struct Products {
  double a = 0, b = 0, both = 0, apart = 0;  // Σ a², Σ b², Σ a b, Σ (a − b)²

  void add(std::span<const double> left, std::span<const double> right) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double distance = left[i] - right[i];
      a += left[i] * left[i];
      b += right[i] * right[i];
      both += left[i] * right[i];
      apart += distance * distance;
    }
  }
  void add(const Products& other) {
    a += other.a;
    b += other.b;
    both += other.both;
    apart += other.apart;
  }
  void tell(TensorDiff& out) const {
    out.relative_error = apart == 0 ? 0 : std::sqrt(apart / a);
    // Rounding must not go beyond what a cosine can be.
    out.cosine = std::clamp(both / (std::sqrt(a) * std::sqrt(b)), -1.0, 1.0);
  }
};

/// Nothing is known of how far apart values are.
TensorDiff without_distance() {
  TensorDiff out;
  out.relative_error = out.cosine = std::numeric_limits<double>::quiet_NaN();
  return out;
}

TensorDiff diff_packed(const Checkpoint& a, const TensorInfo& in_a, const Checkpoint& b,
                       const TensorInfo& in_b) {
  TensorDiff out = without_distance();
  std::vector<std::byte> left(kBlock);
  std::vector<std::byte> right(kBlock);
  for (std::uint64_t at = 0; at < in_a.bytes(); at += kBlock) {
    const std::uint64_t size = std::min<std::uint64_t>(kBlock, in_a.bytes() - at);
    a.read(in_a, at, MutableBytes(left).first(size));
    b.read(in_b, at, MutableBytes(right).first(size));
    for (std::uint64_t i = 0; i < size; ++i) {
      if (left[i] == right[i]) continue;
      if (out.count++ == 0) out.first = at + i;
      out.last = at + i;
    }
  }
  return out;
}

}  // namespace

TensorStats tensor_stats(const Checkpoint& checkpoint, const TensorInfo& tensor, int threads) {
  MASQUE_CHECK(!is_packed(tensor.dtype));
  const std::uint64_t blocks = blocks_of(tensor.elements());
  std::vector<Moments> parts(blocks);
  parallel_for(static_cast<Index>(blocks), threads, [&](Index i) {
    thread_local std::vector<std::byte> bytes;
    thread_local std::vector<double> values;
    const auto block = static_cast<std::uint64_t>(i);
    parts[block] = moments_of(read_block(checkpoint, tensor, block, bytes, values));
  });
  Moments all;
  for (const Moments& part : parts) {
    if (all.stats.count == 0) {
      const TensorStats before = all.stats;
      all.norm_squares += part.norm_squares;
      all.squares = part.squares;
      all.stats = part.stats;
      all.stats.nans += before.nans;
      all.stats.infinities += before.infinities;
    } else {
      add(all, part);
    }
  }
  TensorStats& s = all.stats;
  if (s.count == 0) s.minimum = s.maximum = s.mean = std::numeric_limits<double>::quiet_NaN();
  s.deviation = s.count == 0 ? s.mean : std::sqrt(all.squares / static_cast<double>(s.count));
  s.norm = std::sqrt(all.norm_squares);
  return s;
}

void check_finite(const Checkpoint& checkpoint, const TensorInfo& tensor, int threads) {
  if (!is_float(tensor.dtype)) return;
  const TensorStats stats = tensor_stats(checkpoint, tensor, threads);
  const std::uint64_t bad = stats.nans + stats.infinities;
  if (bad == 0) return;
  throw InputError(checkpoint.path(),
                   fmt::format("{}: {} of {} elements are not finite, expected finite numbers",
                               escape(tensor.name), bad, bad + stats.count));
}

TensorDiff tensor_diff(const Checkpoint& a, const TensorInfo& in_a, const Checkpoint& b,
                       const TensorInfo& in_b, Tolerance tolerance, int threads) {
  MASQUE_CHECK(in_a.shape == in_b.shape);
  const bool same_type = in_a.dtype == in_b.dtype;
  if (is_packed(in_a.dtype) || is_packed(in_b.dtype)) {
    if (same_type) return diff_packed(a, in_a, b, in_b);
    TensorDiff all = without_distance();
    all.count = in_a.elements();
    return all;
  }
  if (components(in_a.dtype) != components(in_b.dtype)) {
    TensorDiff all = without_distance();
    all.count = in_a.elements();
    all.max_absolute = std::numeric_limits<double>::quiet_NaN();
    return all;
  }
  const Compare compare{tolerance, same_type && tolerance.absolute == 0 && tolerance.relative == 0};
  const std::uint64_t blocks = blocks_of(in_a.elements());
  std::vector<TensorDiff> parts(blocks);
  std::vector<Products> products(blocks);
  parallel_for(static_cast<Index>(blocks), threads, [&](Index i) {
    thread_local std::array<std::vector<std::byte>, 2> bytes;
    thread_local std::array<std::vector<double>, 2> values;
    const auto block = static_cast<std::uint64_t>(i);
    const auto left = read_block(a, in_a, block, bytes[0], values[0]);
    const auto right = read_block(b, in_b, block, bytes[1], values[1]);
    products[block].add(left, right);
    if (same_type && bytes[0] == bytes[1]) return;
    const std::size_t per_element = components(in_a.dtype);
    const std::size_t each = same_type ? bytes[0].size() / left.size() : 0;
    for (std::size_t j = 0; j < left.size(); ++j) {
      const bool same_bits = same_type && std::memcmp(bytes[0].data() + j * each,
                                                      bytes[1].data() + j * each, each) == 0;
      compare.element(left[j], right[j], same_bits, block * kBlock + j / per_element, parts[block]);
    }
  });
  TensorDiff out;
  Products sums;
  for (const Products& part : products) sums.add(part);
  sums.tell(out);
  for (const TensorDiff& part : parts) {
    if (part.count > 0 && out.count == 0) out.first = part.first;
    if (part.count > 0) out.last = part.last;
    out.count += part.count;
    out.max_absolute = std::max(out.max_absolute, part.max_absolute);
    out.max_relative = std::max(out.max_relative, part.max_relative);
  }
  return out;
}

namespace {

std::string hash_of(std::uint64_t size, HashKind kind,
                    const std::function<void(std::uint64_t, MutableBytes)>& read) {
  const auto hasher = kind == HashKind::kSha256 ? make_sha256() : make_xxh3();
  std::vector<std::byte> buffer(std::min<std::uint64_t>(1 << 18, size));
  for (std::uint64_t at = 0; at < size;) {
    throw_if_interrupted();
    const auto part = MutableBytes(buffer).first(std::min<std::uint64_t>(buffer.size(), size - at));
    read(at, part);
    hasher->add(part);
    at += part.size();
  }
  return hasher->digest();
}

}  // namespace

std::string range_hash(const InputFile& file, std::uint64_t begin, std::uint64_t end,
                       HashKind kind) {
  return hash_of(end - begin, kind,
                 [&](std::uint64_t offset, MutableBytes out) { file.read(begin + offset, out); });
}

bool same_values(const Checkpoint& checkpoint, const TensorInfo& a, const TensorInfo& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  constexpr std::uint64_t kBytes = 1 << 18;
  std::vector<std::byte> left(kBytes);
  std::vector<std::byte> right(kBytes);
  for (std::uint64_t at = 0; at < a.bytes(); at += kBytes) {
    throw_if_interrupted();
    const std::size_t n = std::min(kBytes, a.bytes() - at);
    checkpoint.read(a, at, std::span(left).first(n));
    checkpoint.read(b, at, std::span(right).first(n));
    if (std::memcmp(left.data(), right.data(), n) != 0) return false;
  }
  return true;
}

std::string opaque_hash(const Checkpoint& checkpoint, const OpaqueTensor& tensor, HashKind kind) {
  return range_hash(checkpoint.files()[tensor.file].file, tensor.begin, tensor.end, kind);
}

std::string tensor_hash(const Checkpoint& checkpoint, const TensorInfo& tensor, HashKind kind) {
  return hash_of(tensor.bytes(), kind, [&](std::uint64_t offset, MutableBytes out) {
    checkpoint.read(tensor, offset, out);
  });
}

}  // namespace masque::store
