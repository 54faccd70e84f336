// cosa: softmax of λ cos(q_i, k_j) with λ = factor · log n_i.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Cosa final : public Normalizer {
 public:
  explicit Cosa(double factor = 4) : factor_(factor) {}
  std::string_view name() const override { return "cosa"; }
  std::string_view source() const override { return "Su 2023, kexue.fm/archives/9859"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    return factor_ * std::log(static_cast<double>(std::max(visible, Index{1})));
  }
  UnitLength unit_length() const override { return UnitLength::kBoth; }
  bool scaled() const override { return false; }
  std::vector<NormalizerParameter> parameters() const override {
    return {{"factor", factor_, -1e3, 1e3}};
  }
  std::unique_ptr<const Normalizer> with(std::span<const double> values) const override {
    return std::make_unique<Cosa>(values[0]);
  }

 private:
  double factor_;
};

const NormalizerRegistration kRegistration(std::make_unique<Cosa>());

}  // namespace

}  // namespace masque::nn
