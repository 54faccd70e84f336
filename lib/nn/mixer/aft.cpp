#include "nn/mixer/aft.hpp"

namespace masque::nn {
namespace {

class Aft final : public mixing::AttentionFree<Aft, true> {
 public:
  static MixerInfo describe() {
    return {"aft",
            "query, key, value d × d; w n × n",
            MaskSupport::kAny,
            true,
            "the leading rows and columns of w",
            "3 n d² + n² d",
            "Zhai 2021, arXiv:2105.14103"};
  }
};

const MixerRegistration kRegistration(std::make_unique<Aft>());

}  // namespace
}  // namespace masque::nn
