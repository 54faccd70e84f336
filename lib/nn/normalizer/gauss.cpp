// gauss: softmax of λ_n s_ij with λ_n = √(2 (log n_i − H₀)) / σ. Scores that are independent and
// normal with deviation σ then have weights of entropy H₀, whatever n_i: H ≈ log n − (λσ)²/2.
//
// Where log n_i ≤ H₀ no temperature gives an entropy of H₀ and `least` stands in: with 0 the
// weights of such rows are equal. The default H₀ = log 512 − σ²/2 makes λ = 1 at 512 keys.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Gauss final : public AttentionNormalizer {
 public:
  explicit Gauss(double entropy = 4.238324625039508, double sigma = 2, double least = 0)
      : entropy_(entropy), sigma_(sigma), least_(least) {}
  std::string_view name() const override { return "gauss"; }
  std::string_view source() const override {
    return "temperature that solves H = log n − (λσ)²/2 for λ; cf. kexue.fm/archives/8823";
  }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    const double n = static_cast<double>(std::max(visible, Index{1}));
    return std::max(least_, std::sqrt(2 * std::max(0.0, std::log(n) - entropy_)) / sigma_);
  }
  std::vector<NormalizerParameter> parameters() const override {
    return {{"entropy", entropy_, 0, 100}, {"sigma", sigma_, 1e-6, 1e6}, {"least", least_, 0, 1e6}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<Gauss>(values[0], values[1], values[2]);
  }

 private:
  double entropy_;
  double sigma_;
  double least_;
};

const NormalizerRegistration kRegistration(std::make_unique<Gauss>());

}  // namespace

}  // namespace masque::nn
