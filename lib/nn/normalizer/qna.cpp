// qna: softmax of q_i·k_j / ‖q_i‖, without 1/√d: normalised queries.
#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class Qna final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "qna"; }
  std::string_view source() const override { return "Su 2023, kexue.fm/archives/9859"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  UnitLength unit_length() const override { return UnitLength::kQueries; }
  bool scaled() const override { return false; }
};

const NormalizerRegistration kRegistration(std::make_unique<Qna>());

}  // namespace

}  // namespace masque::nn
