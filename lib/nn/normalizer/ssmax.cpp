// ssmax: softmax of (s · log n_i + bias) · s_ij. With s = 1/log 512 it is log_n. ssmax_learned: the
// same with an s that each head learns, as in the paper; outside of a model, which has them, they
// are what they start from.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

template <bool kLearned>
class Ssmax final : public AttentionNormalizer {
 public:
  explicit Ssmax(double s = 0.43, double bias = 0) : s_(s), bias_(bias) {}
  std::string_view name() const override { return kLearned ? "ssmax_learned" : "ssmax"; }
  std::string_view source() const override { return "Nakanishi 2025, arXiv:2501.19399"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    return s_ * std::log(static_cast<double>(std::max(visible, Index{1}))) + bias_;
  }
  std::optional<double> offset_of_learned() const override {
    return kLearned ? std::optional(bias_) : std::nullopt;
  }
  std::vector<NormalizerParameter> parameters() const override {
    // The gradient of s is made of scaled queries: a 0 to start from would leave nothing.
    return {{"s", s_, kLearned ? 1e-3 : -1e3, 1e3}, {"bias", bias_, kLearned ? 0 : -1e3, 1e3}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<Ssmax<kLearned>>(values[0], values[1]);
  }

 private:
  double s_;
  double bias_;
};

const NormalizerRegistration kRegistration(std::make_unique<Ssmax<false>>());
const NormalizerRegistration kLearnedRegistration(std::make_unique<Ssmax<true>>());

}  // namespace

}  // namespace masque::nn
