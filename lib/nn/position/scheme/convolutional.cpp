// convolutional: x_k + b + Σ_s c_s ⊙ x_{k+s}, a filter of each feature over neighbouring tokens,
// with zeros beyond both ends: those tell the tokens where the ends are. With causal=true the
// filter ends at the token. Positions are not read: neighbours are. An input of zeros becomes b
// everywhere.
#include <complex>

#include "base/error.hpp"
#include "base/string/named_arguments.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::nn {

namespace {

template <class T>
class ConvolutionalTerms final : public PositionTerms<T> {
 public:
  /// first  s of the first row of the filter.
  ConvolutionalTerms(Index first, const PositionProblem<T>& problem)
      : first_(first),
        filter_(problem.parameters[0]),
        bias_(problem.parameters[1]),
        d_filter_(gradient_of(problem, 0)),
        d_bias_(gradient_of(problem, 1)) {}

  void input(MatrixView<T> x) const override {
    const Matrix<T> from = Matrix<T>::copy(x);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index d = 0; d < x.columns; ++d) x.at(i, d) += bias_.at(0, d);
      for (Index r = 0; r < filter_.rows; ++r) {
        const Index other = i + first_ + r;
        if (other < 0 || other >= x.rows) continue;
        for (Index d = 0; d < x.columns; ++d) {
          x.at(i, d) += filter_.at(r, d) * from.view().at(other, d);
        }
      }
    }
  }

  void input_backward(MatrixView<const T> x, MatrixView<T> d_x) override {
    const Matrix<T> d_out = Matrix<T>::copy(d_x);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index d = 0; d < x.columns && d_bias_.data != nullptr; ++d) {
        d_bias_.at(0, d) += d_out.view().at(i, d);
      }
      for (Index r = 0; r < filter_.rows; ++r) {
        const Index other = i + first_ + r;
        if (other < 0 || other >= x.rows) continue;
        for (Index d = 0; d < x.columns; ++d) {
          d_x.at(other, d) += filter_.at(r, d) * d_out.view().at(i, d);
          if (d_filter_.data != nullptr)
            d_filter_.at(r, d) += x.at(other, d) * d_out.view().at(i, d);
        }
      }
    }
  }

 private:
  Index first_;
  MatrixView<const T> filter_, bias_;
  MatrixView<T> d_filter_, d_bias_;
};

class Convolutional final : public PositionSchemeOf<Convolutional> {
 public:
  Convolutional(Index width, bool causal) : width_(width), causal_(causal) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.input = true;
    facts.masks = causal_ ? MaskSupport::kCausal : MaskSupport::kFull;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position(
        "filter (width, hidden_size), bias (hidden_size)", "width n d",
        "Islam et al. 2020, arXiv:2001.08248; filter: Chu et al. 2021, arXiv:2102.10882");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return {{"filter", width_, shape.hidden_size, 0, 1 / static_cast<double>(width_), {}},
            {"bias", 1, shape.hidden_size, 0, 0, {}}};
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<ConvolutionalTerms<T>>(causal_ ? 1 - width_ : -(width_ / 2), problem);
  }

 private:
  Index width_;
  bool causal_;
};

const PositionRegistration kRegistration(
    "convolutional", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const Index width = arguments.count("width", 3, 1, 10001);
      const bool causal = arguments.flag("causal", false);
      if (!causal && width % 2 == 0) {
        throw UsageError("convolutional: width is even, expected an odd width or causal=true");
      }
      return std::make_unique<Convolutional>(width, causal);
    });

}  // namespace

}  // namespace masque::nn
