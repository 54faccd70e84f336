// AFT without positions. What it takes here is n² d, because masks differ by row; a full or causal
// one alone would take n d.
#include "nn/mixer/aft.hpp"

namespace masque::nn {
namespace {

class AftSimple final : public mixing::AttentionFree<AftSimple, false> {
 public:
  static MixerInfo describe() {
    return {"aft_simple",    "query, key, value d × d",    MaskSupport::kAny, true, "any length",
            "3 n d² + n² d", "Zhai 2021, arXiv:2105.14103"};
  }
};

const MixerRegistration kRegistration(std::make_unique<AftSimple>());

}  // namespace
}  // namespace masque::nn
