// FNet: y = Re(F_tokens(F_hidden(x))), no parameters. As a map of real numbers,
// y_kl = Σ x_nm cos(2π(nk/T + ml/d)), it is its own transpose.
#include "nn/fft.hpp"
#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn {
namespace {

using Complex = std::complex<double>;

/// Adds the mixed x to y; in double whatever T is.
template <class T>
void add_mixed(MatrixView<const T> x, MatrixView<T> y) {
  const Fourier hidden(x.columns);
  const Fourier tokens(x.rows);
  Matrix<Complex> spectrum(x.rows, x.columns);
  mixing::for_row_ranges(x.rows, 64 * x.columns, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto row = spectrum.view().row_span(i);
      for (Index c = 0; c < x.columns; ++c) {
        row[static_cast<std::size_t>(c)] = {static_cast<double>(x.at(i, c)), 0};
      }
      hidden.transform(row);
    }
  });
  mixing::for_row_ranges(x.columns, 64 * x.rows, [&](Index begin, Index end) {
    std::vector<Complex> column(static_cast<std::size_t>(x.rows));
    for (Index c = begin; c < end; ++c) {
      for (Index i = 0; i < x.rows; ++i) {
        column[static_cast<std::size_t>(i)] = spectrum.view().at(i, c);
      }
      tokens.transform(column);
      for (Index i = 0; i < x.rows; ++i) {
        y.at(i, c) += static_cast<T>(column[static_cast<std::size_t>(i)].real());
      }
    }
  });
}

/// The real map, on real and imaginary parts.
void add_mixed(MatrixView<const Complex> x, MatrixView<Complex> y) {
  for (const bool imaginary : {false, true}) {
    Matrix<double> part(x.rows, x.columns);
    Matrix<double> mixed = Matrix<double>::zero(x.rows, x.columns);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index c = 0; c < x.columns; ++c) {
        part.view().at(i, c) = imaginary ? x.at(i, c).imag() : x.at(i, c).real();
      }
    }
    add_mixed<double>(part.view(), mixed.view());
    for (Index i = 0; i < x.rows; ++i) {
      for (Index c = 0; c < x.columns; ++c) {
        const double value = mixed.view().at(i, c);
        y.at(i, c) += imaginary ? Complex(0, value) : Complex(value, 0);
      }
    }
  }
}

class Fnet final : public MixerOf<Fnet> {
 public:
  static MixerInfo describe() {
    return {"fnet",
            "",
            MaskSupport::kFull,
            true,
            "a transform of its own length",
            "n d log(n d)",
            "Lee-Thorp 2021, arXiv:2105.03824"};
  }

  void declare(const MixerShape& /*shape*/, std::vector<MixerParameter>& /*out*/) const {}

  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    for (Index i = 0; i < y.rows; ++i) std::fill_n(y.row(i), y.columns, T{});
    add_mixed(problem.x, y);
  }

  template <class T>
  void mix_backward(const MixerProblem<T>& /*problem*/, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    add_mixed(d_y, gradients.x);
  }
};

const MixerRegistration kRegistration(std::make_unique<Fnet>());

}  // namespace
}  // namespace masque::nn
