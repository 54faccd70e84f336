// ssmax: softmax of (s · log n_i + bias) · s_ij, s and bias trained per head in the paper. With
// s = 1/log 512 it is log_n.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Ssmax final : public AttentionNormalizer {
 public:
  explicit Ssmax(double s = 0.43, double bias = 0) : s_(s), bias_(bias) {}
  std::string_view name() const override { return "ssmax"; }
  std::string_view source() const override { return "Nakanishi 2025, arXiv:2501.19399"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    return s_ * std::log(static_cast<double>(std::max(visible, Index{1}))) + bias_;
  }
  std::vector<NormalizerParameter> parameters() const override {
    return {{"s", s_, -1e3, 1e3}, {"bias", bias_, -1e3, 1e3}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<Ssmax>(values[0], values[1]);
  }

 private:
  double s_;
  double bias_;
};

const NormalizerRegistration kRegistration(std::make_unique<Ssmax>());

}  // namespace

}  // namespace masque::nn
