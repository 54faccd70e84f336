// The synthesizer whose scores are FactorizedDenseScores.
#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

class SynthesizerFactorizedDense final
    : public mixing::Synthesizer<SynthesizerFactorizedDense, mixing::FactorizedDenseScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_factorized_dense",
            "value d × d; per head twice W1 inner × d, b1, W2 a × inner, b2; inner = d / heads, a "
            "= ⌈√n⌉, b = ⌈n / a⌉",
            MaskSupport::kAny,
            true,
            "the leading products",
            "3 n d² + n² d",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerFactorizedDense>());

}  // namespace
}  // namespace masque::nn
