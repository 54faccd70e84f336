// urpe: weights after the normalizer times a trained c of the distance and the head, which starts
// at 1. Distances beyond `clip` share the last.
#include <algorithm>
#include <complex>

#include "base/named_arguments.hpp"
#include "nn/position_scheme.hpp"

namespace masque::nn {

namespace {

template <class T>
class UrpeTerms final : public PositionTerms<T>, public WeightTerms<T> {
 public:
  UrpeTerms(Index clip, const PositionProblem<T>& problem)
      : clip_(clip),
        positions_(problem.positions),
        factors_(problem.parameters[0]),
        d_factors_(gradient_of(problem, 0)) {}

  WeightTerms<T>* weight_terms() override { return this; }

  void multiply(Index head, MatrixView<T> weights) const override {
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) weights.at(i, j) *= factors_.at(row(i, j), head);
    }
  }
  void multiply_backward(Index head, MatrixView<const T> weights,
                         MatrixView<T> d_weights) override {
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) {
        const Index at = row(i, j);
        if (d_factors_.data != nullptr) {
          d_factors_.at(at, head) += d_weights.at(i, j) * weights.at(i, j);
        }
        d_weights.at(i, j) *= factors_.at(at, head);
      }
    }
  }

 private:
  Index row(Index i, Index j) const {
    const Index distance = positions_.queries[static_cast<std::size_t>(i)] -
                           positions_.keys[static_cast<std::size_t>(j)];
    return std::clamp(distance, -clip_, clip_) + clip_;
  }

  Index clip_;
  PositionIds positions_;
  MatrixView<const T> factors_;
  MatrixView<T> d_factors_;
};

class Urpe final : public PositionSchemeOf<Urpe> {
 public:
  explicit Urpe(Index clip) : clip_(clip) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.weights = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("factors (2 clip + 1, heads)", "n² heads",
                             "Luo et al. 2022, arXiv:2205.13401");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return {{"factors", 2 * clip_ + 1, shape.num_attention_heads, 1, 0, {}}};
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<UrpeTerms<T>>(clip_, problem);
  }

 private:
  Index clip_;
};

const PositionRegistration kRegistration(
    "urpe", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<Urpe>(arguments.count("clip", 127, 0, 1 << 20));
    });

}  // namespace

}  // namespace masque::nn
