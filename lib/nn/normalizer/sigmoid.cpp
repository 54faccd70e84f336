// sigmoid: a_ij = 1 / (1 + e^−s_ij), each key on its own; rows sum to anything below n_i. The bias
// −log n of arXiv:2409.04431 is left out.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Sigmoid final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "sigmoid"; }
  std::string_view source() const override {
    return "Ramapuram et al. 2024, arXiv:2409.04431, without their bias";
  }
  ScoreMap map() const override { return ScoreMap::kSigmoid; }
  Divisor divisor() const override { return Divisor::kConstant; }
};

const NormalizerRegistration kRegistration(std::make_unique<Sigmoid>());

}  // namespace

}  // namespace masque::nn
