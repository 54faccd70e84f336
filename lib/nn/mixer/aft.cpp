// aft, and aft_simple without positions. What the latter takes here is n² d, because masks differ
// by row; a full or causal one alone would take n d.
#include "nn/mixer/aft.hpp"

namespace masque::nn {
namespace {

template <bool kWithBias>
class Aft final : public mixing::AttentionFree<Aft<kWithBias>, kWithBias> {
 public:
  static MixerInfo describe() {
    return {kWithBias ? "aft" : "aft_simple",
            kWithBias ? "query, key, value d × d; w n × n" : "query, key, value d × d",
            MaskSupport::kAny,
            true,
            kWithBias ? "the leading rows and columns of w" : "any length",
            "3 n d² + n² d",
            "Zhai 2021, arXiv:2105.14103"};
  }
};

const MixerRegistration kRegistration(std::make_unique<Aft<true>>());
const MixerRegistration kSimpleRegistration(std::make_unique<Aft<false>>());

}  // namespace
}  // namespace masque::nn
