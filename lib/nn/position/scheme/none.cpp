// none: attention that does not know where its tokens stand, but for its mask.
#include "nn/position/position_scheme.hpp"

namespace masque::nn {

namespace {

class None final : public PositionSchemeOf<None> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.direction_aware = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("", "none", "Kazemnejad et al. 2023, arXiv:2305.19466 (NoPE)");
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& /*problem*/) const {
    return std::make_unique<PositionTerms<T>>();
  }
};

const PositionRegistration kRegistration("none",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<None>();
                                         });

}  // namespace

}  // namespace masque::nn
