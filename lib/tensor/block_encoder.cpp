#include "tensor/block_encoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/error.hpp"
#include "base/little_endian.hpp"
#include "tensor/convert.hpp"

namespace masque {

namespace {

constexpr std::size_t kSmallBlock = 32;
constexpr std::size_t kLargeBlock = 256;
constexpr std::size_t kBlockParts = kLargeBlock / kSmallBlock;  ///< of a large block
constexpr std::array<std::string_view, 3> kEncoded{"Q4_0", "Q4_K", "Q8_0"};

/// Writes `value` as binary16 at `out`; returns the number that it then is.
float put_half(float value, std::byte* out) {
  const std::uint32_t code = encode_number(static_cast<double>(value), kF16);
  out[0] = static_cast<std::byte>(code & 255U);
  out[1] = static_cast<std::byte>(code >> 8U);
  return static_cast<float>(decode_number(code, kF16));
}

/// 1 / d for scaling; 0 where that is no number, as all codes are 0 then.
float inverse(float d) {
  const float result = d == 0 ? 0.0F : 1.0F / d;
  return std::isfinite(result) ? result : 0.0F;
}

// A scale, numbers of 8 bits: halves are rounded away from zero.
bool encode_q8_0(const float* in, std::byte* out) {
  float largest = 0;
  for (std::size_t i = 0; i < kSmallBlock; ++i) largest = std::max(largest, std::abs(in[i]));
  const float d = largest / 127.0F, scale = inverse(d);
  for (std::size_t i = 0; i < kSmallBlock; ++i) {
    const float x = in[i] * scale, size = std::abs(x), whole = std::floor(size);
    const float rounded = whole + std::floor(2.0F * (size - whole));
    out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(x < 0 ? -rounded : rounded));
  }
  return std::isfinite(put_half(d, out));
}

// A scale, numbers of 4 bits less 8: the one of the largest magnitude becomes −8.
bool encode_q4_0(const float* in, std::byte* out) {
  float extreme = in[0];
  for (std::size_t i = 1; i < kSmallBlock; ++i)
    if (std::abs(in[i]) > std::abs(extreme)) extreme = in[i];
  const float d = extreme / -8.0F, scale = inverse(d);
  const bool finite = std::isfinite(put_half(d, out));
  const auto code = [&](std::size_t i) {
    if (scale == 0 && d != 0) return 0U;
    const float x = std::trunc(in[i] * scale + 8.5F);
    return static_cast<unsigned>(std::clamp(x, 0.0F, 15.0F));
  };
  for (std::size_t i = 0; i < kSmallBlock / 2; ++i)
    out[2 + i] = static_cast<std::byte>(code(i) | code(i + kSmallBlock / 2) << 4U);
  return finite;
}

/// x ≈ scale · code − minimum, codes 0 to 15.
struct Line {
  float scale = 0;
  float minimum = 0;  ///< at least 0
};

float code_of(float x, Line line) {
  const float scaled = (x + line.minimum) * inverse(line.scale);
  return std::clamp(std::nearbyint(scaled), 0.0F, 15.0F);
}

/// The line with the least weighted square error for the codes that `guess` gives; `guess` itself
/// where these do not determine one.
Line fitted(std::span<const float> x, std::span<const float> weights, Line guess) {
  double w = 0, wq = 0, wqq = 0, wx = 0, wqx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto weight = static_cast<double>(weights[i]), number = static_cast<double>(x[i]);
    const auto q = static_cast<double>(code_of(x[i], guess));
    w += weight;
    wq += weight * q;
    wqq += weight * q * q;
    wx += weight * number;
    wqx += weight * q * number;
  }
  const double determinant = w * wqq - wq * wq;
  if (!(determinant > 0)) return guess;
  double scale = (w * wqx - wq * wx) / determinant;
  double least = (wqq * wx - wq * wqx) / determinant;
  if (least > 0) {
    // Minimums are subtracted, and not negative.
    least = 0;
    scale = wqq > 0 ? wqx / wqq : 0;
  }
  if (!(scale > 0)) return guess;
  return {static_cast<float>(scale), static_cast<float>(-least)};
}

double error_of(std::span<const float> x, std::span<const float> weights, Line line) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto off = static_cast<double>(line.scale * code_of(x[i], line) - line.minimum - x[i]);
    sum += static_cast<double>(weights[i]) * off * off;
  }
  return sum;
}

/// The best line of several: with codes for ranges that are a bit narrower and wider than that of
/// the numbers, each fitted. Larger numbers count more.
Line best_line(std::span<const float> x) {
  constexpr int kTries = 20;
  std::array<float, kSmallBlock> weights{};
  float squares = 0;
  for (const float number : x) squares += number * number;
  const float typical = std::sqrt(squares / static_cast<float>(kSmallBlock));
  for (std::size_t i = 0; i < kSmallBlock; ++i) weights[i] = typical + std::abs(x[i]);
  const auto [low, high] = std::ranges::minmax(x);
  const float minimum = std::max(0.0F, -low);
  const float range = high + minimum;
  if (!(range > 0)) return {0, minimum};
  Line best{range / 15.0F, minimum};
  double least = error_of(x, weights, best);
  for (int i = 0; i <= kTries; ++i) {
    const Line guess{range / (14.0F + 0.1F * static_cast<float>(i)), minimum};
    const Line line = fitted(x, weights, guess);
    const double error = error_of(x, weights, line);
    if (error < least) {
      least = error;
      best = line;
    }
  }
  return best;
}

/// `value` in 6 bits of `unit`.
unsigned six_bits(float value, float unit) {
  return static_cast<unsigned>(std::clamp(std::nearbyint(value * inverse(unit)), 0.0F, 63.0F));
}

// Scales of scales and of minimums, 8 of either in 6 bits, numbers of 4 bits.
bool encode_q4_k(const float* in, std::byte* out) {
  std::array<Line, kBlockParts> lines{};
  Line largest;
  for (std::size_t part = 0; part < kBlockParts; ++part) {
    lines[part] = best_line({in + part * kSmallBlock, kSmallBlock});
    largest.scale = std::max(largest.scale, lines[part].scale);
    largest.minimum = std::max(largest.minimum, lines[part].minimum);
  }
  const float d = put_half(largest.scale / 63.0F, out);
  const float least = put_half(largest.minimum / 63.0F, out + 2);
  std::array<unsigned, 12> packed{};
  std::array<unsigned, kLargeBlock> codes{};
  for (std::size_t part = 0; part < kBlockParts; ++part) {
    const unsigned scale = six_bits(lines[part].scale, d);
    const unsigned minimum = six_bits(lines[part].minimum, least);
    if (part < 4) {
      packed[part] |= scale;
      packed[part + 4] |= minimum;
    } else {
      packed[part + 4] |= (scale & 15U) | (minimum & 15U) << 4U;
      packed[part - 4] |= (scale >> 4U) << 6U;
      packed[part] |= (minimum >> 4U) << 6U;
    }
    const Line own{d * static_cast<float>(scale), least * static_cast<float>(minimum)};
    for (std::size_t i = 0; i < kSmallBlock; ++i)
      codes[part * kSmallBlock + i] =
          static_cast<unsigned>(code_of(in[part * kSmallBlock + i], own));
  }
  for (std::size_t i = 0; i < packed.size(); ++i) out[4 + i] = static_cast<std::byte>(packed[i]);
  for (std::size_t pair = 0; pair < kBlockParts / 2; ++pair) {
    for (std::size_t i = 0; i < kSmallBlock; ++i) {
      const unsigned low = codes[2 * pair * kSmallBlock + i],
                     high = codes[(2 * pair + 1) * kSmallBlock + i];
      out[16 + pair * kSmallBlock + i] = static_cast<std::byte>(low | high << 4U);
    }
  }
  return std::isfinite(d) && std::isfinite(least);
}

}  // namespace

std::span<const std::string_view> encoded_formats() { return kEncoded; }

bool encode_blocks(const BlockFormat& format, std::span<const float> in, MutableBytes out) {
  const std::size_t blocks = in.size() / format.elements;
  MASQUE_CHECK(in.size() == blocks * format.elements && out.size() == blocks * format.bytes);
  bool finite = true;
  const auto each = [&](bool (*encode)(const float*, std::byte*)) {
    for (std::size_t b = 0; b < blocks; ++b)
      finite &= encode(in.data() + b * format.elements, out.data() + b * format.bytes);
  };
  if (format.name == "Q8_0") {
    each(encode_q8_0);
  } else if (format.name == "Q4_0") {
    each(encode_q4_0);
  } else {
    MASQUE_CHECK(format.name == "Q4_K");
    each(encode_q4_k);
  }
  return finite;
}

}  // namespace masque
