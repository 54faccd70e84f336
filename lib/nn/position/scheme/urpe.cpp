// urpe: weights after the normalizer times a trained c of the distance and the head, which starts
// at 1. Distances beyond `clip` share the last. What else positions do is another scheme's: the
// paper's models have T5's biases, too, urpe(scheme=t5).
#include <algorithm>
#include <complex>
#include <utility>

#include "base/error.hpp"
#include "base/string/named_arguments.hpp"
#include "nn/position/inner_terms.hpp"

namespace masque::nn {

namespace {

template <class T>
class UrpeTerms final : public InnerTerms<T>, public WeightTerms<T> {
 public:
  UrpeTerms(const PositionScheme& scheme, Index clip, PositionProblem<T> problem)
      : clip_(clip),
        positions_(problem.positions),
        factors_(problem.parameters[0]),
        d_factors_(gradient_of(problem, 0)) {
    problem.parameters = problem.parameters.subspan(1);
    if (!problem.gradients.empty()) problem.gradients = problem.gradients.subspan(1);
    this->inner_ = scheme.terms(problem);
  }

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
  Urpe(std::shared_ptr<const PositionScheme> scheme, Index clip)
      : scheme_(std::move(scheme)), clip_(clip) {}

  PositionFacts facts() const override {
    PositionFacts facts = scheme_->facts();
    facts.weights = true;
    facts.direction_aware = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("factors (2 clip + 1, heads); parameters of the inner scheme",
                             "n² heads", "Luo et al. 2022, arXiv:2205.13401");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const Index heads = shape.value_heads > 0 ? shape.value_heads : shape.num_attention_heads;
    std::vector<PositionParameter> all{{"factors", 2 * clip_ + 1, heads, 1, 0, {}}};
    for (PositionParameter& parameter : scheme_->parameters(shape))
      all.push_back(std::move(parameter));
    return all;
  }
  double scale(const PositionShape& shape) const override { return scheme_->scale(shape); }
  Index position_count(Index rows) const override { return scheme_->position_count(rows); }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<UrpeTerms<T>>(*scheme_, clip_, problem);
  }

 private:
  std::shared_ptr<const PositionScheme> scheme_;
  Index clip_;
};

const PositionRegistration kRegistration(
    "urpe", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const Index clip = arguments.count("clip", 127, 0, 1 << 20);
      std::shared_ptr<const PositionScheme> scheme =
          parse_position(arguments.text("scheme", "none"));
      if (scheme->facts().weights)
        throw UsageError(
            "urpe: the inner scheme already multiplies attention weights, expected another scheme");
      return std::make_unique<Urpe>(std::move(scheme), clip);
    });

}  // namespace

}  // namespace masque::nn
