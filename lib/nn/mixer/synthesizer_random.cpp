// synthesizer_random, and synthesizer_fixed, whose scores stay as they were drawn. With T-TA's
// constant values in place of x the latter is a bag of words by position, the floor that other
// mixers are measured against.
#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

template <bool kTrained>
class SynthesizerRandom final
    : public mixing::Synthesizer<SynthesizerRandom<kTrained>, mixing::RandomScores<kTrained>> {
 public:
  static MixerInfo describe() {
    return {kTrained ? "synthesizer_random" : "synthesizer_fixed",
            kTrained ? "value d × d; per head scores n × n"
                     : "value d × d; per head frozen scores n × n",
            MaskSupport::kAny,
            false,
            "the leading rows and columns of the scores",
            "n d² + n² d",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerRandom<true>>());
const MixerRegistration kFixedRegistration(std::make_unique<SynthesizerRandom<false>>());

}  // namespace
}  // namespace masque::nn
