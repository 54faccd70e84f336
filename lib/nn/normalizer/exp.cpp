// exp: a_ij = e^{s_ij}, softmax without its denominator. Nothing keeps scores above 88 (709 in
// double) from overflowing.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Exp final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "exp"; }
  std::string_view source() const override { return "Su 2022, kexue.fm/archives/9105"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kConstant; }
};

const NormalizerRegistration kRegistration(std::make_unique<Exp>());

}  // namespace

}  // namespace masque::nn
