// kna: softmax of q_i·k_j / ‖k_j‖, without 1/√d: normalised keys.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Kna final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "kna"; }
  std::string_view source() const override { return "Su 2023, kexue.fm/archives/9859"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  UnitLength unit_length() const override { return UnitLength::kKeys; }
  bool scaled() const override { return false; }
};

const NormalizerRegistration kRegistration(std::make_unique<Kna>());

}  // namespace

}  // namespace masque::nn
