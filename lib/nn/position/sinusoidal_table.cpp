#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "nn/position/position.hpp"

namespace masque::nn {

template <class T>
void sinusoidal_table(std::span<const double> positions, bool interleaved, MatrixView<T> table) {
  const Index size = table.columns;
  MASQUE_CHECK(static_cast<Index>(positions.size()) == table.rows && size % 2 == 0);
  const Index half = size / 2;
  for (Index i = 0; i < half; ++i) {
    const double frequency =
        std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(size));
    const Index sine = interleaved ? 2 * i : i;
    const Index cosine = interleaved ? 2 * i + 1 : half + i;
    for (Index row = 0; row < table.rows; ++row) {
      const double angle = positions[static_cast<std::size_t>(row)] * frequency;
      table.at(row, sine) = static_cast<T>(std::sin(angle));
      table.at(row, cosine) = static_cast<T>(std::cos(angle));
    }
  }
}

template void sinusoidal_table(std::span<const double>, bool, MatrixView<float>);
template void sinusoidal_table(std::span<const double>, bool, MatrixView<double>);
template void sinusoidal_table(std::span<const double>, bool, MatrixView<std::complex<double>>);

}  // namespace masque::nn
