// cosa: softmax of λ cos(q_i, k_j) with λ = factor · log n; n is the length of training, or with
// length = 0 the number of visible keys of the row.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Cosa final : public AttentionNormalizer {
 public:
  explicit Cosa(double factor = 4, double length = 512) : factor_(factor), length_(length) {}
  std::string_view name() const override { return "cosa"; }
  std::string_view source() const override { return "Su 2023, kexue.fm/archives/9859"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    const auto keys = static_cast<double>(std::max(visible, Index{1}));
    return factor_ * std::log(length_ > 0 ? length_ : keys);
  }
  UnitLength unit_length() const override { return UnitLength::kBoth; }
  bool scaled() const override { return false; }
  std::vector<NormalizerParameter> parameters() const override {
    return {{"factor", factor_, -1e3, 1e3}, {"length", length_, 0, 1e9}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<Cosa>(values[0], values[1]);
  }

 private:
  double factor_;
  double length_;
};

const NormalizerRegistration kRegistration(std::make_unique<Cosa>());

}  // namespace

}  // namespace masque::nn
