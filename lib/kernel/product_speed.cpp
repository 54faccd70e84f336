#include "kernel/product_speed.hpp"

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "kernel/trained_linear.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

double measure_product(Precision precision) {
  using Clock = std::chrono::steady_clock;
  constexpr Index kSize = 1024;
  constexpr double kSeconds = 0.1;
  const Matrix<float> x = Matrix<float>::zero(kSize, kSize);
  Matrix<float> y(kSize, kSize);
  TrainedLinear<float> weight;
  const MatrixView<const float> view = x.view();
  weight.pack({&view, 1}, precision);
  weight.forward(view, {}, y.view());
  double best = 1e9;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    weight.forward(view, {}, y.view());
    best = std::min(best, seconds_since(start));
  } while (seconds_since(begin) < kSeconds);
  return 2.0 * kSize * kSize * kSize / best;
}

}  // namespace masque::kernel
