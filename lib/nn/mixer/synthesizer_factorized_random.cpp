// B = R₁ R₂ᵀ, both (n, inner).
#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

class SynthesizerFactorizedRandom final
    : public mixing::Synthesizer<SynthesizerFactorizedRandom, mixing::FactorizedRandomScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_factorized_random",
            "value d × d; per head two factors n × inner; inner = 8",
            MaskSupport::kAny,
            false,
            "the leading rows of both factors",
            "n d² + n² d + n² heads inner",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerFactorizedRandom>());

}  // namespace
}  // namespace masque::nn
