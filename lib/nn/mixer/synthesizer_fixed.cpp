// Scores that stay as they were drawn. With T-TA's constant values in place of x: a bag of words by
// position, the floor that other mixers are measured against.
#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

class SynthesizerFixed final
    : public mixing::Synthesizer<SynthesizerFixed, mixing::RandomScores<false>> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_fixed",
            "value d × d; frozen scores n × n of each head",
            MaskSupport::kAny,
            false,
            "the leading rows and columns of the scores",
            "n d² + n² d",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerFixed>());

}  // namespace
}  // namespace masque::nn
