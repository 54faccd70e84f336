// softmax_plus (Attention-E): softmax of s_ij · log max(n_i, 16) / log 512, so that the entropy of
// weights depends less on the length.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class SoftmaxPlus final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "softmax_plus"; }
  std::string_view source() const override {
    return "Su 2021, kexue.fm/archives/8823; GAU-α, kexue.fm/archives/9052";
  }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  /// log n / log 512 = log2 n / 9: 1 at 512 visible keys, exactly.
  double temperature(Index visible) const override {
    constexpr Index kLeast = 16;
    return std::log2(static_cast<double>(std::max(visible, kLeast))) / 9;
  }
};

const NormalizerRegistration kRegistration(std::make_unique<SoftmaxPlus>());

}  // namespace

}  // namespace masque::nn
