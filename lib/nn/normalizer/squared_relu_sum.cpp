// squared_relu_sum: a_ij = max(s_ij, 0)² / Σ_j max(s_ij, 0)². Rows without a positive score are 0.
// No temperature changes it: it cancels.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class SquaredReluSum final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "squared_relu_sum"; }
  std::string_view source() const override { return "Su 2022, kexue.fm/archives/9019"; }
  ScoreMap map() const override { return ScoreMap::kSquaredRelu; }
  Divisor divisor() const override { return Divisor::kSum; }
};

const NormalizerRegistration kRegistration(std::make_unique<SquaredReluSum>());

}  // namespace

}  // namespace masque::nn
