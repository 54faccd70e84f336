// squared_relu: a_ij = max(s_ij, 0)² / n_i, where n_i is the number of keys that i may read.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class SquaredRelu final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "squared_relu"; }
  std::string_view source() const override {
    return "Hua et al. 2022, arXiv:2202.10447, with n_i as in kexue.fm/archives/8934";
  }
  ScoreMap map() const override { return ScoreMap::kSquaredRelu; }
  Divisor divisor() const override { return Divisor::kConstant; }
  double constant(Index visible) const override { return static_cast<double>(visible); }
};

const NormalizerRegistration kRegistration(std::make_unique<SquaredRelu>());

}  // namespace

}  // namespace masque::nn
