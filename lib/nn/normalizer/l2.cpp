// l2: a_ij = exp(s_ij) / √Σ_j exp(2 s_ij). Rows have Euclidean length 1, and their sums tell how
// many keys there are.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class L2 final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "l2"; }
  std::string_view source() const override { return "Su 2022, kexue.fm/archives/9105"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kRootSquares; }
};

const NormalizerRegistration kRegistration(std::make_unique<L2>());

}  // namespace

}  // namespace masque::nn
