// exp, erf and tanh in float, written so that loops over them vectorise: no branches, no calls,
// plain + − × ÷ and integer steps only, so that every instruction set gives the same bits.
//
// Errors against the exact value are at most 2 units in the last place (tests/kernel).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace masque::kernel {

namespace elementary_detail {

/// a where the condition holds, else b: bits, because g++ 12 does not always turn ?: into a blend.
inline float select(bool condition, float a, float b) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) |
                              (std::bit_cast<std::uint32_t>(b) & ~mask));
}

/// 2^n for −127 < n < 128.
inline float power_of_two(std::int32_t n) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23U);
}

}  // namespace elementary_detail

/// e^x. exp(0) = 1 exactly; 0 below −104, ∞ above 88.73; NaN stays NaN. Results below 1e-38 are
/// rounded twice. After Moshier's Cephes, expf.
inline float fast_exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
  x = 89.0F < x ? 89.0F : x;             // this order keeps NaN
  x = -104.0F > x ? -104.0F : x;
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  // ln 2 in two parts, the first short enough for n · part to be exact.
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float y = (p * (r * r) + r) + 1.0F;
  // Two factors: 2^n itself need not be a normal number.
  const auto whole = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - 0x4B400000U);
  const std::int32_t half = whole >> 1;
  return y * elementary_detail::power_of_two(half) * elementary_detail::power_of_two(whole - half);
}

/// erf(x). Polynomials of N. Juffa (public domain, 2019).
inline float fast_erf(float x) {
  const float t = std::fabs(x);
  const float s = x * x;
  float far = -1.72853470e-5F * t + 3.83197126e-4F;
  const float u = -3.88396438e-3F * t + 2.42546219e-2F;
  far = far * s + u;
  far = far * t - 1.06777877e-1F;
  far = far * t - 6.34846687e-1F;
  far = far * t - 1.28717512e-1F;
  far = far * t - t;
  far = std::copysign(1.0F - fast_exp(far), x);
  float near = -5.96761703e-4F;
  near = near * s + 4.99119423e-3F;
  near = near * s - 2.67681349e-2F;
  near = near * s + 1.12819925e-1F;
  near = near * s - 3.76125336e-1F;
  near = near * s + 1.28379166e-1F;
  near = near * x + x;
  return elementary_detail::select(t > 0.927734375F, far, near);
}

/// tanh(x). After Moshier's Cephes, tanhf.
inline float fast_tanh(float x) {
  const float t = std::fabs(x);
  const float far = std::copysign(1.0F - 2.0F / (fast_exp(2.0F * t) + 1.0F), x);
  const float s = x * x;
  float near = -5.70498872745e-3F;
  near = near * s + 2.06390887954e-2F;
  near = near * s - 5.37397155531e-2F;
  near = near * s + 1.33314422036e-1F;
  near = near * s - 3.33332819422e-1F;
  near = near * s * x + x;
  return elementary_detail::select(t > 0.625F, far, near);
}

/// 1 / (1 + e^−x).
inline float fast_sigmoid(float x) { return 1.0F / (1.0F + fast_exp(-x)); }

}  // namespace masque::kernel
