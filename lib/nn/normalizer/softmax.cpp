// softmax: a_ij = exp(s_ij) / Σ_j exp(s_ij).
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Softmax final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "softmax"; }
  std::string_view source() const override {
    return "Bridle 1990; attention: Vaswani et al. 2017, arXiv:1706.03762";
  }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
};

const NormalizerRegistration kRegistration(std::make_unique<Softmax>());

}  // namespace

}  // namespace masque::nn
