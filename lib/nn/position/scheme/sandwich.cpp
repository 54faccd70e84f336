// sandwich: λ_h p_i·p_j on scores, with sinusoidal p of `size` features: λ_h Σ_t cos((i − j) θ_t),
// λ_h = heads / 8h for h = 1 … heads.
#include <cmath>
#include <complex>

#include "base/string/named_arguments.hpp"
#include "kernel/rotary.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/offset_bias.hpp"

namespace masque::nn {

namespace {

class Sandwich final : public PositionSchemeOf<Sandwich> {
 public:
  explicit Sandwich(Index size) : frequencies_(kernel::rotary_frequencies(10000, size)) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    facts.direction_aware = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("", "n² heads", "Chi et al. 2022, arXiv:2212.10356");
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    const double eighth = static_cast<double>(problem.shape.num_attention_heads) / 8;
    auto bias = offset_bias<T>(
        [this, eighth](Index head, Index offset) {
          double sum = 0;
          // Of |offset|: cosines of x and −x may differ in the last bit.
          for (const double f : frequencies_) {
            sum += std::cos(static_cast<double>(std::abs(offset)) * f);
          }
          return static_cast<T>(sum * eighth / static_cast<double>(head + 1));
        },
        problem.positions);
    return std::make_unique<OffsetTerms<T>>(std::move(bias), problem.positions);
  }

 private:
  std::vector<double> frequencies_;
};

const PositionRegistration kRegistration(
    "sandwich", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const Index size = arguments.count("size", 128, 2, 1 << 20);
      require_even("sandwich", "size", size);
      return std::make_unique<Sandwich>(size);
    });

}  // namespace

}  // namespace masque::nn
