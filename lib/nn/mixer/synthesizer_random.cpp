#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

class SynthesizerRandom final
    : public mixing::Synthesizer<SynthesizerRandom, mixing::RandomScores<true>> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_random",
            "value d × d; scores n × n of each head",
            MaskSupport::kAny,
            false,
            "the leading rows and columns of the scores",
            "n d² + n² d",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerRandom>());

}  // namespace
}  // namespace masque::nn
