// exp, log, erf and tanh in float, written so that loops over them vectorise: no branches, no
// calls, plain + − × ÷ and integer steps only, so that every instruction set gives the same bits.
//
// Errors against the exact value are at most 2 units in the last place (tests/kernel).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace masque::kernel {

namespace elementary_detail {

/// `a` where the `condition` holds, else `b`: bits, because g++ 12 does not
/// always turn ?: into a blend.
inline float select(bool condition, float a, float b) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) |
                              (std::bit_cast<std::uint32_t>(b) & ~mask));
}

/// 2^n for −127 < `n` < 128.
inline float power_of_two(std::int32_t n) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23U);
}

/// e^x for −87 ≤ `x` ≤ 0, after Moshier's Cephes, expf. For plain loops; exp_group() in
/// group-inl.hpp is for vector code, has no limits of x and other last bits.
inline float exp_in_range(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
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
  const float fraction = (p * (r * r) + r) + 1.0F;
  return fraction * power_of_two(static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                                           0x4B400000U));
}

}  // namespace elementary_detail

/// e^x for `x` ≤ 0; exp(0) = 1 exactly; 0 below −87, so that no slow tiny number
/// ever appears; NaN stays NaN.
inline float fast_exp_negative(float x) {
  constexpr float kLeast = -87.0F;
  const float kept = kLeast > x ? kLeast : x;  // this order keeps NaN
  return elementary_detail::select(x < kLeast, 0.0F, elementary_detail::exp_in_range(kept));
}

/// log(x) for normal `x` > 0; below 2^−126, also 0 and negative x, it is log 2^−126, so that x ·
/// log x is 0 at 0; of infinity and NaN it is some number. After Moshier's Cephes, logf.
inline float fast_log(float x) {
  constexpr float kLeast = 0x1p-126F;
  x = kLeast > x ? kLeast : x;
  const auto bits = std::bit_cast<std::int32_t>(x);
  // x = m · 2^e with √½ ≤ m < √2.
  const std::int32_t e = (bits - 0x3F3504F3) >> 23;
  const float f = std::bit_cast<float>(bits - (e << 23)) - 1.0F;
  const auto whole = static_cast<float>(e);
  const float s = f * f;
  float p = 7.0376836292e-2F;
  p = p * f - 1.1514610310e-1F;
  p = p * f + 1.1676998740e-1F;
  p = p * f - 1.2420140846e-1F;
  p = p * f + 1.4249322787e-1F;
  p = p * f - 1.6668057665e-1F;
  p = p * f + 2.0000714765e-1F;
  p = p * f - 2.4999993993e-1F;
  p = p * f + 3.3333331174e-1F;
  p = p * f * s - 2.12194440e-4F * whole - 0.5F * s;
  return f + p + 0.693359375F * whole;
}

/// erf(x) for any `x`. Polynomials of N. Juffa (public domain, 2019).
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
  far = std::copysign(1.0F - fast_exp_negative(far), x);
  float near = -5.96761703e-4F;
  near = near * s + 4.99119423e-3F;
  near = near * s - 2.67681349e-2F;
  near = near * s + 1.12819925e-1F;
  near = near * s - 3.76125336e-1F;
  near = near * s + 1.28379166e-1F;
  near = near * x + x;
  return elementary_detail::select(t > 0.927734375F, far, near);
}

/// x · Φ(x) for any `x`, by erf(z) = z P(z²) / Q(z²) for |z| ≤ 3.92 and ±1 beyond: half the steps
/// of fast_erf. Error at most 3e-7 · max(|x|, 1). P and Q are a minimax fit of relative error 2e-9.
inline float fast_gelu(float x) {
  constexpr float kFarthest = 3.92F;
  float z = x * 0.707106781F;
  z = kFarthest < z ? kFarthest : z;  // this order keeps NaN
  z = -kFarthest > z ? -kFarthest : z;
  const float s = z * z;
  float p = -1.3202278e-8F;
  p = p * s + 4.6847886e-6F;
  p = p * s + 3.79609119e-4F;
  p = p * s + 3.8496058e-3F;
  p = p * s + 5.43169007e-2F;
  p = p * s + 1.85203046e-1F;
  p = p * s + 1.12837923F;
  float q = 6.31106814e-5F;
  q = q * s + 1.30756909e-3F;
  q = q * s + 1.54620791e-2F;
  q = q * s + 1.13958351e-1F;
  q = q * s + 4.97465342e-1F;
  q = q * s + 1.0F;
  const float half = 0.5F * x;
  return half + half * (z * p / q);
}

/// tanh(x) for any `x`. After Moshier's Cephes, tanhf.
inline float fast_tanh(float x) {
  const float t = std::fabs(x);
  const float e = fast_exp_negative(-2.0F * t);
  const float far = std::copysign((1.0F - e) / (1.0F + e), x);
  const float s = x * x;
  float near = -5.70498872745e-3F;
  near = near * s + 2.06390887954e-2F;
  near = near * s - 5.37397155531e-2F;
  near = near * s + 1.33314422036e-1F;
  near = near * s - 3.33332819422e-1F;
  near = near * s * x + x;
  return elementary_detail::select(t > 0.625F, far, near);
}

/// 1 / (1 + e^−x) for any `x`.
inline float fast_sigmoid(float x) {
  const float e = fast_exp_negative(-std::fabs(x));
  return elementary_detail::select(x < 0.0F, e, 1.0F) / (1.0F + e);
}

/// log(1 + e^x) in double, for any `x`, without overflow; −log σ(−x).
inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace masque::kernel
