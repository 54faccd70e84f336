// sinusoidal: sines and cosines of the position, interleaved, added to the input.
#include <complex>
#include <vector>

#include "nn/position/position_scheme.hpp"

namespace masque::nn {

namespace {

template <class T>
class SinusoidalTerms final : public PositionTerms<T> {
 public:
  explicit SinusoidalTerms(const PositionProblem<T>& problem)
      : waves_(std::ssize(problem.positions.keys), problem.shape.hidden_size) {
    const std::vector<double> positions(problem.positions.keys.begin(),
                                        problem.positions.keys.end());
    sinusoidal_table<T>(positions, true, waves_.view());
  }
  void input(MatrixView<T> x) const override {
    for (Index i = 0; i < x.rows; ++i) {
      for (Index d = 0; d < x.columns; ++d) x.at(i, d) += waves_.view().at(i, d);
    }
  }

 private:
  Matrix<T> waves_;
};

class Sinusoidal final : public PositionSchemeOf<Sinusoidal> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.input = true;
    facts.relative = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("", "none", "Vaswani et al. 2017, arXiv:1706.03762");
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    require_even(name(), "hidden_size", problem.shape.hidden_size);
    return std::make_unique<SinusoidalTerms<T>>(problem);
  }
};

const PositionRegistration kRegistration("sinusoidal",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<Sinusoidal>();
                                         });

}  // namespace

}  // namespace masque::nn
