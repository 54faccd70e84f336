// alibi: −slope_h · |i − j| on scores.
#include <complex>

#include "nn/position/score_terms.hpp"

namespace masque::nn {

namespace {

class Alibi final : public PositionSchemeOf<Alibi> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    facts.direction_aware = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("", "n² heads", "Press et al. 2021, arXiv:2108.12409");
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return alibi_terms<T>(problem.shape.num_attention_heads, problem.positions);
  }
};

const PositionRegistration kRegistration("alibi",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<Alibi>();
                                         });

}  // namespace

}  // namespace masque::nn
