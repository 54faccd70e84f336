// alibi: −slope_h · |i − j| on scores. bf16=true, as transformers computes Falcon: slope_h · j of
// the key's position j alone, scaled as q · k is; slope, position and product are rounded to
// bfloat16.
#include <cmath>
#include <complex>

#include "base/string/named_arguments.hpp"
#include "kernel/number/bfloat16.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::nn {

namespace {

float rounded_to_bf16(double x) {
  auto number = static_cast<float>(x);
  kernel::round_row_to_bf16(&number, 1, &number);
  return number;
}

/// Terms slope_h · j of keys alone. After the normalizer they differ from those of distances by the
/// rounding only, which is not the same for all keys.
template <class T>
class KeySlopes final : public PositionTerms<T>, public ScoreBias<T>, public ScoreTermsGradient<T> {
 public:
  explicit KeySlopes(const PositionProblem<T>& problem)
      : keys_(problem.positions.keys),
        slopes_(alibi_slopes(problem.shape.num_attention_heads)),
        scale_(1 / std::sqrt(static_cast<double>(problem.shape.head_size))) {}

  const ScoreBias<T>* bias() const override { return this; }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }
  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> /*query*/,
                                    MatrixView<const T> /*key*/) const override {
    const float slope = rounded_to_bf16(slopes_[static_cast<std::size_t>(head)]);
    return std::make_unique<PairBias<T>>([this, slope](Index /*query*/, Index key) {
      const auto position = static_cast<double>(keys_[static_cast<std::size_t>(key)]);
      return static_cast<T>(scale_ * rounded_to_bf16(slope * rounded_to_bf16(position)));
    });
  }

  void backward(Index /*head*/, MatrixView<const T> /*query*/, MatrixView<const T> /*key*/,
                MatrixView<const T> /*d_scores*/, MatrixView<T> /*d_query*/,
                MatrixView<T> /*d_key*/) override {}

 private:
  std::span<const Index> keys_;
  std::vector<double> slopes_;
  double scale_;
};

class Alibi final : public PositionSchemeOf<Alibi> {
 public:
  explicit Alibi(bool bf16) : bf16_(bf16) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    facts.direction_aware = bf16_;
    facts.relative = !bf16_;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("", "n² heads", "Press et al. 2021, arXiv:2108.12409");
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    if (bf16_) return std::make_unique<KeySlopes<T>>(problem);
    return alibi_terms<T>(problem.shape.num_attention_heads, problem.positions);
  }

 private:
  bool bf16_;
};

const PositionRegistration kRegistration(
    "alibi", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<Alibi>(arguments.flag("bf16", false));
    });

}  // namespace

}  // namespace masque::nn
