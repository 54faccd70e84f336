// t5: a trained number of the bucket of the distance, for each head, on scores that are not
// divided by √d.
#include <cmath>

#include "base/error.hpp"
#include "base/string/named_arguments.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::nn {

namespace {

class T5 final : public PositionSchemeOf<T5> {
 public:
  T5(Index buckets, Index max_distance, bool bidirectional)
      : buckets_(buckets), max_distance_(max_distance), bidirectional_(bidirectional) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("relative_attention_bias (buckets, heads)", "n² heads",
                             "Raffel et al. 2019, arXiv:1910.10683");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const double deviation = 1 / std::sqrt(static_cast<double>(shape.hidden_size));
    return {{"relative_attention_bias", buckets_, shape.num_attention_heads, 0, deviation, {}}};
  }
  double scale(const PositionShape& /*shape*/) const override { return 1; }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return t5_terms<T>(problem.parameters[0], gradient_of(problem, 0), max_distance_,
                       bidirectional_, problem.positions);
  }

 private:
  Index buckets_;
  Index max_distance_;
  bool bidirectional_;
};

const PositionRegistration kRegistration(
    "t5", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const Index buckets = arguments.count("buckets", 32, 4, 1 << 20);
      const Index max_distance =
          arguments.count("max_distance", std::max<Index>(128, buckets), buckets, 1 << 20);
      const bool bidirectional = arguments.flag("bidirectional", true);
      if (bidirectional && buckets % 2 != 0) {
        throw UsageError("t5: buckets is odd, expected an even number with bidirectional=true");
      }
      return std::make_unique<T5>(buckets, max_distance, bidirectional);
    });

}  // namespace

}  // namespace masque::nn
