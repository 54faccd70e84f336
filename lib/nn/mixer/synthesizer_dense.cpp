#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

class SynthesizerDense final : public mixing::Synthesizer<SynthesizerDense, mixing::DenseScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_dense",
            "value d × d; per head W1 inner × d, b1, W2 n × inner, b2; inner = d / heads",
            MaskSupport::kAny,
            true,
            "the leading rows of W2",
            "2 n d² + 2 n² d",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerDense>());

}  // namespace
}  // namespace masque::nn
