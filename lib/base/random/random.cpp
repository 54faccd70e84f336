#include "base/random/random.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.hpp"

namespace masque {

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t item)
    : key_(XXH3_64bits_withSeed(purpose.data(), purpose.size(), seed)), item_(item) {}

PhiloxBlock RandomStream::block(std::uint64_t i) const {
  return philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                 static_cast<std::uint32_t>(item_), static_cast<std::uint32_t>(item_ >> 32)},
                key_);
}

void RandomStream::words(std::uint64_t first, std::size_t n, std::uint32_t* out) const {
  philox_words(first, item_, key_, n, out);
}

namespace {

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kPi = 3.14159265358979323846;

/// Natural logarithm of x in (0, 1], error below 1e-15: x = m·2^e with m in [√½, √2), then the
/// series of 2·artanh((m − 1)/(m + 1)).
double log_of(double x) {
  auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FE0000000000000ULL);
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * z + 1.0 / k;
  return 2 * s * sum + exponent * kLn2;
}

/// sin and cos of 2π·turn for turn in [0, 1), by Taylor series on an eighth of the circle.
void sin_cos_turn(double turn, double& sine, double& cosine) {
  const double eighths = turn * 4 + 0.5;
  const int quarter = static_cast<int>(eighths) & 3;
  const double x = (turn * 4 - std::floor(eighths)) * (kPi / 2);  // in [−π/4, π/4)
  const double z = x * x;
  double s = 0;
  double c = 0;
  for (int k = 8; k >= 1; --k) {
    s = -(1 + s) * z / ((2.0 * k) * (2.0 * k + 1));
    c = -(1 + c) * z / ((2.0 * k - 1) * (2.0 * k));
  }
  s = x * (1 + s);
  c = 1 + c;
  sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
  cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

}  // namespace

void RandomStream::normal(std::uint64_t first, std::size_t n, double* out) const {
  // Block i holds the values 4i … 4i+3, as two Box–Muller pairs.
  std::size_t done = 0;
  while (done < n) {
    const std::uint64_t index = first + done;
    const PhiloxBlock words = block(index / 4);
    std::array<double, 4> values{};
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const double u = (words[2 * pair] + 1.0) * 0x1p-32;  // (0, 1]
      const double radius = std::sqrt(-2 * log_of(u));
      double sine = 0;
      double cosine = 0;
      sin_cos_turn(words[2 * pair + 1] * 0x1p-32, sine, cosine);
      values[2 * pair] = radius * cosine;
      values[2 * pair + 1] = radius * sine;
    }
    for (std::size_t j = index % 4; j < 4 && done < n; ++j) out[done++] = values[j];
  }
}

std::uint32_t Draw::next() {
  if (used_ % 4 == 0) block_ = stream_.block(used_ / 4);
  return block_[used_++ % 4];
}

// Lemire 2019, arXiv:1805.10941, with two words for ranges beyond 32 bits.
Index Draw::below(Index n) {
  MASQUE_CHECK(n > 0 && n <= Index{1} << 32);
  const auto range = static_cast<std::uint64_t>(n);
  std::uint64_t product = next() * range;
  auto low = static_cast<std::uint32_t>(product);
  if (low < range) {
    const std::uint64_t limit = (std::uint64_t{1} << 32) % range;
    while (low < limit) {
      product = next() * range;
      low = static_cast<std::uint32_t>(product);
    }
  }
  return static_cast<Index>(product >> 32);
}

void Draw::below(Index n, std::span<std::uint32_t> out) {
  constexpr std::size_t kAtOnce = 1024;
  MASQUE_CHECK(n > 0 && n <= Index{1} << 32);
  const auto range = static_cast<std::uint64_t>(n);
  const std::uint64_t limit = (std::uint64_t{1} << 32) % range;
  std::size_t done = 0;
  // To the next block, then blocks by the dozen; a word that below() would refuse is left out.
  while (done < out.size() && used_ % 4 != 0) out[done++] = static_cast<std::uint32_t>(below(n));
  std::array<std::uint32_t, kAtOnce> words{};
  while (out.size() - done >= kAtOnce) {
    stream_.words(used_ / 4, kAtOnce, words.data());
    used_ += kAtOnce;
    for (const std::uint32_t word : words) {
      const std::uint64_t product = word * range;
      if (static_cast<std::uint32_t>(product) < limit) continue;
      out[done++] = static_cast<std::uint32_t>(product >> 32);
    }
  }
  while (done < out.size()) out[done++] = static_cast<std::uint32_t>(below(n));
}

std::vector<Index> random_order(Index n, Draw& draw) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  for (Index i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(draw.below(i + 1))]);
  }
  return order;
}

std::vector<bool> random_subset(Index n, Index count, Draw& draw) {
  std::vector<bool> chosen(static_cast<std::size_t>(n), false);
  // Selection sampling: each element in turn, with the chance that the rest needs.
  Index needed = count;
  for (Index i = 0; i < n && needed > 0; ++i) {
    if (draw.below(n - i) >= needed) continue;
    chosen[static_cast<std::size_t>(i)] = true;
    --needed;
  }
  return chosen;
}

}  // namespace masque
