#include "nn/mixer/gmlp.hpp"

namespace masque::nn {
namespace {

class Gmlp final : public mixing::GatedMixer<Gmlp, mixing::StaticGate> {
 public:
  static MixerInfo describe() {
    return {"gmlp",
            "two norms d and inner / 2; U inner × d, V d × inner / 2, both with bias; W n × n, b "
            "n; inner = 4 d",
            MaskSupport::kAny,
            true,
            "the leading rows and columns of W",
            "1.5 n d inner + 0.5 n² inner",
            "Liu 2021, arXiv:2105.08050"};
  }
};

const MixerRegistration kRegistration(std::make_unique<Gmlp>());

}  // namespace
}  // namespace masque::nn
