// Moments and differences of tensors against plain loops, for every type, and the same bits for any
// number of threads.
#include "store/tensor_stats.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/near.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::bytes_tensor;
using test::far_off;
using test::make_safetensors;
using test::SmallTensor;
using test::TempFolder;
using test::write_file;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kBlock = 65536;  // elements that are summed at once

/// A checkpoint of tensors called "a", "b", …
struct File {
  explicit File(const std::vector<SmallTensor>& tensors) {
    write_file(folder / "x.safetensors", make_safetensors(tensors));
    checkpoint.emplace(open_checkpoint(folder / "x.safetensors"));
  }
  TensorStats stats(int threads = 2, const std::string& name = "a") const {
    return tensor_stats(*checkpoint, checkpoint->get(name), threads);
  }
  TensorDiff diff(Tolerance tolerance = {}, int threads = 2) const {
    return tensor_diff(*checkpoint, checkpoint->get("a"), *checkpoint, checkpoint->get("b"),
                       tolerance, threads);
  }
  TempFolder folder;
  std::optional<Checkpoint> checkpoint;
};

std::string name_of(DType dtype) { return std::string(dtype_name(dtype)); }

SmallTensor doubles(const std::string& name, const std::vector<double>& values) {
  return {name, "F64", {values.size()}, raw(values)};
}

/// The same by loops over everything at once, in long double.
TensorStats naive_stats(const std::vector<double>& values) {
  TensorStats s;
  s.minimum = kInf;
  s.maximum = -kInf;
  long double sum = 0;
  long double norm = 0;
  for (const double x : values) {
    s.nans += std::isnan(x);
    s.infinities += std::isinf(x);
    if (!std::isfinite(x)) continue;
    ++s.count;
    s.zeros += x == 0;
    s.minimum = std::min(s.minimum, x);
    s.maximum = std::max(s.maximum, x);
    sum += x;
    norm += static_cast<long double>(x) * x;
  }
  s.norm = static_cast<double>(std::sqrt(norm));
  if (s.count == 0) {
    s.minimum = s.maximum = s.mean = s.deviation = kNan;
    return s;
  }
  const long double mean = sum / static_cast<long double>(s.count);
  long double squares = 0;
  for (const double x : values) {
    if (std::isfinite(x)) squares += (x - mean) * (x - mean);
  }
  s.mean = static_cast<double>(mean);
  s.deviation = static_cast<double>(std::sqrt(squares / static_cast<long double>(s.count)));
  return s;
}

/// Counts and extremes exactly, sums up to rounding.
void check_stats(const TensorStats& found, const TensorStats& expected) {
  CHECK(found.count == expected.count);
  CHECK(found.zeros == expected.zeros);
  CHECK(found.nans == expected.nans);
  CHECK(found.infinities == expected.infinities);
  const std::vector<double> exact = {found.minimum, found.maximum};
  CHECK(far_off(exact, std::vector<double>{expected.minimum, expected.maximum}, 0, 0) == "");
  const std::vector<double> sums = {found.mean, found.deviation, found.norm};
  const double scale = std::isnan(expected.maximum)
                           ? 1
                           : std::max(std::abs(expected.minimum), std::abs(expected.maximum));
  CHECK(far_off(sums, std::vector<double>{expected.mean, expected.deviation, expected.norm},
                1e-12 * scale, 1e-12) == "");
}

TEST_CASE("moments of every type equal those of a plain loop") {
  for (const DType dtype : all_dtypes()) {
    if (is_packed(dtype)) continue;
    const std::size_t each = dtype_bits(dtype) / 8;
    std::string bytes;
    if (dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kC64) {
      // Random bits of these would be numbers of all sizes, whose sums say little.
      const auto values = normal_values(1, 3000, 3);
      bytes = dtype == DType::kF64 ? raw(values)
                                   : raw(std::vector<float>(values.begin(), values.end()));
    } else if (dtype == DType::kBool) {
      bytes = random_bytes(2, 1500);
      for (char& c : bytes) c &= 1;
    } else {
      bytes = random_bytes(3, 1500 * each);
    }
    const File file({{"a", name_of(dtype), {bytes.size() / each}, bytes}});
    CAPTURE(dtype_name(dtype));
    const TensorStats expected = naive_stats(decoded(dtype, bytes));
    CHECK(expected.count > 1000);
    check_stats(file.stats(), expected);
  }
}

TEST_CASE("moments of any number of elements equal those of a plain loop") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, kBlock - 1, kBlock, kBlock + 1,
                                  3 * kBlock, 3 * kBlock + 77}) {
    auto values = normal_values(count, count, 0.02);
    values[count / 2] += 1;
    CAPTURE(count);
    check_stats(File({doubles("a", values)}).stats(), naive_stats(values));
  }
}

TEST_CASE("a mean that is large compared with the deviation costs no digits") {
  auto values = normal_values(4, 2 * kBlock, 1);
  for (double& x : values) x += 1e8;
  const TensorStats found = File({doubles("a", values)}).stats();
  const TensorStats expected = naive_stats(values);
  CHECK(std::abs(found.deviation - expected.deviation) < 1e-9);
  CHECK(std::abs(found.mean - expected.mean) < 1e-6);
}

TEST_CASE("NaN and infinity are counted and left out, wherever they are") {
  auto values = normal_values(5, 4 * kBlock, 1);
  values[0] = kNan;
  values[kBlock - 1] = -kInf;
  values[kBlock] = kInf;
  values[2 * kBlock + 5] = -kNan;
  values[7] = 0.0;
  values[8] = -0.0;
  check_stats(File({doubles("a", values)}).stats(), naive_stats(values));
  // Whole blocks without a number: the first, the middle, the last, all.
  for (const auto& blocks : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 3}, {3, 4}, {0, 4}}) {
    const auto& begin = blocks.first;
    const auto& end = blocks.second;
    auto some = values;
    for (std::size_t i = begin * kBlock; i < end * kBlock; ++i) some[i] = i % 3 == 0 ? kInf : kNan;
    CAPTURE(begin);
    CAPTURE(end);
    check_stats(File({doubles("a", some)}).stats(), naive_stats(some));
  }
}

TEST_CASE("nothing has no moments, one number has its own") {
  const File file({doubles("a", {}),
                   {"b", "F32", {3, 0, 2}, ""},
                   {"c", "F32", {}, raw<float>({-2.5F})},
                   {"d", "F32", {2}, raw<float>({-0.0F, -0.0F})}});
  for (const char* name : {"a", "b"}) {
    const TensorStats s = file.stats(2, name);
    CHECK(s.count == 0);
    CHECK(s.norm == 0);
    CHECK(s.zeros + s.nans + s.infinities == 0);
    for (const double x : {s.minimum, s.maximum, s.mean, s.deviation}) CHECK(std::isnan(x));
  }
  const TensorStats one = file.stats(2, "c");
  CHECK(one.count == 1);
  CHECK((one.minimum == -2.5 && one.maximum == -2.5 && one.mean == -2.5 && one.norm == 2.5));
  CHECK(one.deviation == 0);
  CHECK(file.stats(2, "d").zeros == 2);
}

TEST_CASE("integers of 64 bits keep their extremes") {
  const File file({{"a", "I64", {3}, raw<std::int64_t>({INT64_MIN, 0, INT64_MAX})},
                   {"b", "U64", {2}, raw<std::uint64_t>({UINT64_MAX, 1})}});
  const TensorStats a = file.stats();
  CHECK(a.minimum == -0x1p63);
  CHECK(a.maximum == 0x1p63);
  CHECK(a.zeros == 1);
  CHECK(file.stats(1, "b").maximum == 0x1p64);
}

bool same_bits(const TensorStats& a, const TensorStats& b) {
  const auto bits = [](const TensorStats& s) {
    return std::array{s.count,
                      s.zeros,
                      s.nans,
                      s.infinities,
                      std::bit_cast<std::uint64_t>(s.minimum),
                      std::bit_cast<std::uint64_t>(s.maximum),
                      std::bit_cast<std::uint64_t>(s.mean),
                      std::bit_cast<std::uint64_t>(s.deviation),
                      std::bit_cast<std::uint64_t>(s.norm)};
  };
  return bits(a) == bits(b);
}

TEST_CASE("moments and differences have the same bits for any number of threads") {
  const auto values = normal_values(6, 5 * kBlock + 3, 1);
  auto other = normal_values(7, values.size(), 1);
  for (std::size_t i = 0; i < values.size(); i += 3) other[i] = values[i];
  const File file({doubles("a", values), doubles("b", other)});
  const TensorStats stats = file.stats(1);
  const TensorDiff diff = file.diff({}, 1);
  CHECK(diff.count > 100000);
  for (const int threads : {2, 3, 7, 16}) {
    CAPTURE(threads);
    CHECK(same_bits(file.stats(threads), stats));
    const TensorDiff again = file.diff({}, threads);
    CHECK(again.count == diff.count);
    CHECK(again.first == diff.first);
    CHECK(again.max_absolute == diff.max_absolute);
    CHECK(again.max_relative == diff.max_relative);
  }
}

/// |a − b| where two NaN are the same and one is infinitely far from any number.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::isnan(a) || std::isnan(b) ? kInf : std::abs(a - b);
}

/// A plain loop over elements that stand for one number each.
TensorDiff naive_diff(const SmallTensor& a, const SmallTensor& b, Tolerance tolerance) {
  const DType type_a = find_dtype(a.dtype).value();
  const DType type_b = find_dtype(b.dtype).value();
  const auto left = decoded(type_a, a.bytes);
  const auto right = decoded(type_b, b.bytes);
  const std::size_t each = dtype_bits(type_a) / 8;
  const bool exact = tolerance.absolute == 0 && tolerance.relative == 0;
  TensorDiff out;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double d = distance(left[i], right[i]);
    const bool differs =
        exact && a.dtype == b.dtype
            ? a.bytes.compare(i * each, each, b.bytes, i * each, each) != 0
            : d > 0 && !(std::isfinite(d) &&
                         d <= tolerance.absolute + tolerance.relative * std::abs(right[i]));
    if (!differs) continue;
    if (out.count++ == 0) out.first = i;
    const double larger = std::max(std::abs(left[i]), std::abs(right[i]));
    out.max_absolute = std::max(out.max_absolute, d);
    if (d > 0) out.max_relative = std::max(out.max_relative, std::isinf(d) ? d : d / larger);
  }
  return out;
}

void check_diff(const SmallTensor& a, const SmallTensor& b, Tolerance tolerance) {
  const TensorDiff found = File({a, b}).diff(tolerance);
  const TensorDiff expected = naive_diff(a, b, tolerance);
  CAPTURE(a.dtype);
  CAPTURE(b.dtype);
  CAPTURE(tolerance.absolute);
  CAPTURE(tolerance.relative);
  CHECK(found.count == expected.count);
  CHECK(found.first == expected.first);
  CHECK(found.max_absolute == expected.max_absolute);
  CHECK(found.max_relative == expected.max_relative);
}

constexpr Tolerance kTolerances[] = {{0, 0}, {0.01, 0}, {0, 0.01}, {0.5, 0.25}, {1e300, 0}};

TEST_CASE("differences within a type are those of a plain loop") {
  for (const DType dtype : all_dtypes()) {
    if (is_packed(dtype) || dtype == DType::kC64) continue;
    const std::size_t each = dtype_bits(dtype) / 8;
    SmallTensor a{"a", name_of(dtype), {700}, random_bytes(1, 700 * each)};
    SmallTensor b{"b", name_of(dtype), {700}, random_bytes(2, 700 * each)};
    for (std::size_t i = 0; i < 700; i += 2)
      b.bytes.replace(i * each, each, a.bytes, i * each, each);
    if (dtype == DType::kBool) {
      for (std::string* bytes : {&a.bytes, &b.bytes}) {
        for (char& c : *bytes) c &= 1;
      }
    }
    for (const Tolerance& tolerance : kTolerances) {
      // Infinity with a relative tolerance has a test of its own.
      const bool infinite = dtype == DType::kF16 || dtype == DType::kF8E5M2;
      if (!(infinite && tolerance.relative > 0)) check_diff(a, b, tolerance);
    }
  }
}

TEST_CASE("differences between types are those of a plain loop over the values") {
  const auto values = normal_values(8, 900, 2);
  const std::vector<float> narrow(values.begin(), values.end());
  std::vector<std::int32_t> whole;
  for (const double x : values) whole.push_back(static_cast<std::int32_t>(x));
  const std::vector<SmallTensor> tensors = {
      {"a", "F64", {900}, raw(values)},
      {"b", "F32", {900}, raw(narrow)},
      {"b", "I32", {900}, raw(whole)},
      {"a", "F32", {900}, raw(narrow)},
      {"b", "F64", {900}, raw(std::vector<double>(narrow.begin(), narrow.end()))}};
  for (const Tolerance& tolerance : kTolerances) {
    check_diff(tensors[0], tensors[1], tolerance);
    check_diff(tensors[0], tensors[2], tolerance);
    check_diff(tensors[3], tensors[4], tolerance);
  }
  // What a wider type holds exactly is the same.
  CHECK(File({tensors[3], tensors[4]}).diff().count == 0);
}

TEST_CASE("bits differ where values do not: zeros and NaN by sign and payload") {
  const float quiet = std::bit_cast<float>(0x7FC00000U);
  const float other = std::bit_cast<float>(0xFFC00001U);
  const File file({{"a", "F32", {4}, raw<float>({0.0F, quiet, 1, quiet})},
                   {"b", "F32", {4}, raw<float>({-0.0F, other, 1, quiet})}});
  const TensorDiff exact = file.diff();
  CHECK(exact.count == 2);
  CHECK(exact.first == 0);
  CHECK(exact.max_absolute == 0);
  CHECK(exact.max_relative == 0);
  CHECK(file.diff({1e-9, 0}).count == 0);
  CHECK(file.diff({0, 1e-9}).count == 0);
}

TEST_CASE("one NaN and opposite infinities are infinitely far apart") {
  const auto diff = [](double a, double b, Tolerance tolerance = {}) {
    return File({doubles("a", {1, 1, a}), doubles("b", {1, 1, b})}).diff(tolerance);
  };
  for (const auto& pair : {std::pair{kNan, 1.0},
                           {1.0, kNan},
                           {kInf, -kInf},
                           {kInf, kNan},
                           {5.0, -kInf},
                           {kInf, 0.0}}) {
    const auto& a = pair.first;
    const auto& b = pair.second;
    CAPTURE(a);
    CAPTURE(b);
    CHECK(diff(a, b).count == 1);
    CHECK(diff(a, b).first == 2);
    CHECK(diff(a, b).max_absolute == kInf);
    CHECK(diff(a, b, {1e9, 0}).count == 1);
  }
  for (const auto& [a, b] : {std::pair{1.0, kNan}, {kInf, -kInf}, {5.0, -kInf}, {kInf, 0.0}}) {
    CHECK(diff(a, b).max_relative == kInf);
  }
  CHECK(diff(kInf, kInf).count == 0);
  CHECK(diff(-kInf, -kInf, {0, 1}).count == 0);
  CHECK(diff(kNan, kNan).count == 0);
}

TEST_CASE("a tolerance holds up to its last bit") {
  const auto count = [](double a, double b, Tolerance tolerance) {
    return File({doubles("a", {a}), doubles("b", {b})}).diff(tolerance).count;
  };
  CHECK(count(1.25, 1, {0.25, 0}) == 0);
  CHECK(count(std::nextafter(1.25, 2), 1, {0.25, 0}) == 1);
  CHECK(count(0.75, 1, {0, 0.25}) == 0);
  CHECK(count(std::nextafter(0.75, 0), 1, {0, 0.25}) == 1);
  CHECK(count(-3, -2, {0.5, 0.25}) == 0);
  CHECK(count(-3.0000000000001, -2, {0.5, 0.25}) == 1);
  // Relative to B, not to A.
  CHECK(count(1, 2, {0, 0.5}) == 0);
  CHECK(count(2, 1, {0, 0.5}) == 1);
}

TEST_CASE("differences far into a tensor are found at their place") {
  auto a = normal_values(9, 3 * kBlock, 1);
  auto b = a;
  const std::size_t far = 2 * kBlock + 11;
  b[far] += 3;
  b[far + 1] = -b[far + 1];
  const TensorDiff diff = File({doubles("a", a), doubles("b", b)}).diff();
  CHECK(diff.count == 2);
  CHECK(diff.first == far);
  CHECK(diff.max_absolute == std::max(b[far] - a[far], 2 * std::abs(a[far + 1])));
}

TEST_CASE("complex numbers differ in either part and are counted once") {
  const SmallTensor a{"a", "C64", {4}, raw<float>({1, 2, 3, 4, 5, 6, 7, 8})};
  const auto diff = [&](const std::vector<float>& b) {
    return File({a, {"b", "C64", {4}, raw(b)}}).diff();
  };
  CHECK(diff({1, 2, 3, 4, 5, 6, 7, 8}).count == 0);
  const TensorDiff real = diff({1, 2, 3, 4, 5.5F, 6, 7, 8});
  CHECK(real.count == 1);
  CHECK(real.first == 2);
  CHECK(real.max_absolute == 0.5);
  const TensorDiff imaginary = diff({1, 2, 3, 5, 5, 6, 7, 10});
  CHECK(imaginary.count == 2);
  CHECK(imaginary.first == 1);
  CHECK(imaginary.max_absolute == 2);
}

TEST_CASE("packed types are compared by bytes") {
  const SmallTensor a{"a", "F4", {2, 3}, "abc"};
  CHECK(File({a, {"b", "F4", {2, 3}, "abc"}}).diff().count == 0);
  const TensorDiff diff = File({a, {"b", "F4", {2, 3}, "aBC"}}).diff({9, 9});
  CHECK(diff.count == 2);
  CHECK(diff.first == 1);
  std::string bytes = random_bytes(3, 200000);
  const SmallTensor large{"a", "F4", {400000}, bytes};
  bytes[150000] = static_cast<char>(bytes[150000] + 1);
  CHECK(File({large, {"b", "F4", {400000}, bytes}}).diff().first == 150000);
  // Types that have nothing to compare differ in every element.
  CHECK(File({a, {"b", "U8", {2, 3}, "abcdef"}}).diff().count == 6);
  CHECK(File({{"a", "C64", {1}, std::string(8, '\0')}, {"b", "F32", {1}, std::string(4, '\0')}})
            .diff()
            .count == 1);
}

TEST_CASE("tensors without elements are equal") {
  CHECK(File({{"a", "F32", {0, 3}, ""}, {"b", "F32", {0, 3}, ""}}).diff().count == 0);
  CHECK(File({{"a", "F32", {0, 3}, ""}, {"b", "F16", {0, 3}, ""}}).diff().count == 0);
  const TensorDiff scalar = File({{"a", "I8", {}, "\1"}, {"b", "I8", {}, "\3"}}).diff();
  CHECK(scalar.count == 1);
  CHECK(scalar.max_absolute == 2);
}

TEST_CASE("hashes are those of the bytes alone, by tensor and by range") {
  const std::string bytes = random_bytes(5, 600001);
  const File file({bytes_tensor("a", "12345678"), bytes_tensor("b", bytes)});
  const TensorInfo& b = file.checkpoint->get("b");
  for (const auto& [kind, hasher] :
       {std::pair{HashKind::kSha256, &make_sha256}, {HashKind::kXxh3, &make_xxh3}}) {
    const auto whole = hasher();
    whole->add(as_bytes(bytes));
    CHECK(tensor_hash(*file.checkpoint, b, kind) == whole->digest());
    const auto part = hasher();
    part->add(as_bytes(std::string_view(bytes).substr(7, 300000)));
    CHECK(range_hash(file.checkpoint->files()[0].file, b.begin + 7, b.begin + 300007, kind) ==
          part->digest());
    CHECK(range_hash(file.checkpoint->files()[0].file, 9, 9, kind) == hasher()->digest());
  }
}

TEST_CASE("an infinity is near nothing else, whatever the tolerance") {
  for (const auto& pair : {std::pair{1.0, kInf}, {-kInf, kInf}, {kNan, kInf}, {kInf, 1.0}}) {
    const auto& a = pair.first;
    const auto& b = pair.second;
    CAPTURE(a);
    CAPTURE(b);
    CHECK(File({doubles("a", {a}), doubles("b", {b})}).diff({1e300, 1}).count == 1);
  }
}

TEST_CASE("infinities of different types are equal") {
  const float inf = std::numeric_limits<float>::infinity();
  const File file({doubles("a", {kInf, -kInf, 2}), {"b", "F32", {3}, raw<float>({inf, -inf, 2})}});
  CHECK(file.diff().count == 0);
  CHECK(file.diff({0.5, 0}).count == 0);
  CHECK(file.diff({0, 0.5}).count == 0);
}

TEST_CASE("a complex number that differs in both parts is counted once") {
  const File file(
      {{"a", "C64", {2}, raw<float>({1, 2, 3, 4})}, {"b", "C64", {2}, raw<float>({5, 6, 3, 4})}});
  CHECK(file.diff().count == 1);
}

TEST_CASE("a NaN in either tensor is infinitely far in relative terms") {
  CHECK(File({doubles("a", {1}), doubles("b", {kNan})}).diff().max_relative == kInf);
  CHECK(File({doubles("a", {kNan}), doubles("b", {1})}).diff().max_relative == kInf);
}

}  // namespace
}  // namespace masque::store
