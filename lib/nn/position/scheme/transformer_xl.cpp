// transformer_xl: queries times projected sines of the distance, and two trained vectors that stand
// for the query where a score does not depend on it.
#include <complex>

#include "nn/position/transformer_xl_terms.hpp"

namespace masque::nn {

namespace {

class TransformerXl final : public PositionSchemeOf<TransformerXl> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("relative (hidden_size, d), content_bias (d), position_bias (d)",
                             "n² d + 2 n d²", "Dai et al. 2019, arXiv:1901.02860");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return transformer_xl_parameters(shape);
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    require_even(name(), "hidden_size", problem.shape.hidden_size);
    return xlnet_terms<T>(transformer_xl_terms(problem, scale(problem.shape)), problem.positions);
  }
};

const PositionRegistration kRegistration("transformer_xl",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<TransformerXl>();
                                         });

}  // namespace

}  // namespace masque::nn
