// squared_relu_fixed: a_ij = max(s_ij, 0)² / n with the same n for all lengths.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class SquaredReluFixed final : public AttentionNormalizer {
 public:
  explicit SquaredReluFixed(double n = 512) : n_(n) {}
  std::string_view name() const override { return "squared_relu_fixed"; }
  std::string_view source() const override { return "Su 2022, kexue.fm/archives/9019"; }
  ScoreMap map() const override { return ScoreMap::kSquaredRelu; }
  Divisor divisor() const override { return Divisor::kConstant; }
  double constant(Index /*visible*/) const override { return n_; }
  std::vector<NormalizerParameter> parameters() const override { return {{"n", n_, 1, 1e9}}; }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<SquaredReluFixed>(values[0]);
  }

 private:
  double n_;
};

const NormalizerRegistration kRegistration(std::make_unique<SquaredReluFixed>());

}  // namespace

}  // namespace masque::nn
