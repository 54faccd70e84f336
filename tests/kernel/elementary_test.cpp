// exp, erf and tanh in float against the exact functions, in units in the last place.
#include "kernel/number/elementary.hpp"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "kernel/number/bfloat16.hpp"

namespace masque::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Largest error over a dense sample of floats with low ≤ |x| ≤ high.
template <class Fast, class Exact>
double worst(float low, float high, const Fast& fast, const Exact& exact) {
  double result = 0;
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(low);
       bits <= std::bit_cast<std::uint32_t>(high); bits += 997) {
    for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)}) {
      const double truth = exact(static_cast<double>(x));
      const auto nearest = static_cast<float>(truth);
      if (std::fabs(nearest) < std::numeric_limits<float>::min() || std::isinf(nearest)) continue;
      const double unit =
          std::fabs(static_cast<double>(std::nextafter(std::fabs(nearest), kInfinity)) -
                    static_cast<double>(std::fabs(nearest)));
      result = std::max(result, std::fabs(static_cast<double>(fast(x)) - truth) / unit);
    }
  }
  return result;
}

TEST_CASE("exp, erf and tanh are within 2 units in the last place") {
  const auto erf = [](double x) { return std::erf(x); };
  const auto tanh = [](double x) { return std::tanh(x); };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto fast_negative = [](float x) { return kernel::fast_exp_negative(-std::fabs(x)); };
  const auto negative = [](double x) { return std::exp(-std::fabs(x)); };
  CHECK(worst(1e-30F, 87.0F, fast_negative, negative) <= 2);
  CHECK(worst(1e-30F, 87.0F, kernel::fast_sigmoid, sigmoid) <= 3);
  CHECK(worst(1e-30F, 10.0F, kernel::fast_erf, erf) <= 2);
  CHECK(worst(1e-30F, 20.0F, kernel::fast_tanh, tanh) <= 2);
}

TEST_CASE("gelu is within 3e-7 times its argument") {
  double worst = 0;
  for (int i = -2000000; i <= 2000000; ++i) {
    const float x = static_cast<float>(i) * 5e-6F;
    const auto exact = static_cast<double>(x);
    const double truth = 0.5 * exact * (1 + std::erf(exact / std::sqrt(2.0)));
    const double error = std::fabs(static_cast<double>(kernel::fast_gelu(x)) - truth);
    worst = std::max(worst, error / std::max(1.0, std::fabs(exact)));
  }
  CHECK(worst <= 3e-7);
  CHECK(worst > 1e-9);
  CHECK(kernel::fast_gelu(0.0F) == 0.0F);
  CHECK(kernel::fast_gelu(kInfinity) == kInfinity);
  CHECK(std::isnan(kernel::fast_gelu(kNan)));
}

TEST_CASE("log is within a relative error of 2^-22") {
  double worst = 0;
  for (float x = 0x1p-126F; x < 1e38F; x *= 1.00001F) {
    const double truth = std::log(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(kernel::fast_log(x)) - truth);
    worst = std::max(worst, error / std::fabs(truth));
  }
  CHECK(worst <= 2 * 0x1p-23);
  CHECK(worst > 1e-9);
  CHECK(kernel::fast_log(1.0F) == 0.0F);
  CHECK(kernel::fast_log(0.0F) == kernel::fast_log(0x1p-126F));
  CHECK(kernel::fast_log(-1.0F) == kernel::fast_log(0.0F));
}

TEST_CASE("exp, erf and tanh at the ends") {
  CHECK(kernel::fast_exp_negative(0.0F) == 1.0F);
  CHECK(kernel::fast_exp_negative(-0.0F) == 1.0F);
  CHECK(kernel::fast_exp_negative(-87.5F) == 0.0F);
  CHECK(kernel::fast_exp_negative(-kInfinity) == 0.0F);
  CHECK(std::isnan(kernel::fast_exp_negative(kNan)));
  CHECK(kernel::fast_sigmoid(-kInfinity) == 0.0F);
  CHECK(kernel::fast_sigmoid(kInfinity) == 1.0F);
  CHECK(std::isnan(kernel::fast_sigmoid(kNan)));
  CHECK(kernel::fast_erf(0.0F) == 0.0F);
  CHECK(kernel::fast_erf(kInfinity) == 1.0F);
  CHECK(kernel::fast_erf(-kInfinity) == -1.0F);
  CHECK(std::isnan(kernel::fast_erf(kNan)));
  CHECK(kernel::fast_tanh(0.0F) == 0.0F);
  CHECK(kernel::fast_tanh(kInfinity) == 1.0F);
  CHECK(kernel::fast_tanh(-kInfinity) == -1.0F);
  CHECK(std::isnan(kernel::fast_tanh(kNan)));
}

TEST_CASE("bfloat16 is rounded to nearest, ties to even") {
  const float x[] = {1.0F, 1.00390625F, 1.01171875F, 1.00390637F, -3.14159274F, kInfinity, kNan};
  std::uint16_t bits[7];
  float rounded[7];
  kernel::to_bf16_row(x, 7, bits);
  kernel::round_row_to_bf16(x, 7, rounded);
  CHECK(bits[0] == 0x3F80);
  CHECK(bits[1] == 0x3F80);  // a tie: down to the even one
  CHECK(bits[2] == 0x3F82);  // a tie: up
  CHECK(bits[3] == 0x3F81);
  CHECK(bits[4] == 0xC049);
  CHECK(bits[5] == 0x7F80);
  CHECK(std::isnan(rounded[6]));
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK((std::bit_cast<std::uint32_t>(rounded[i]) >> 16U) == bits[i]);
  }
}

}  // namespace
}  // namespace masque::test
