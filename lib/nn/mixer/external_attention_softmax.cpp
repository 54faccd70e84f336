// With a softmax over memories alone: a feed-forward layer in which no token learns anything of
// another. What a mixer must beat.
#include "nn/mixer/external_attention.hpp"

namespace masque::nn {
namespace {

class ExternalSoftmax final : public mixing::ExternalAttention<ExternalSoftmax> {
 public:
  static MixerInfo describe() {
    return {"external_attention_softmax",
            "memories of keys and values inner × d; inner = 64",
            MaskSupport::kFull,
            true,
            "any length",
            "2 n d inner",
            "Guo 2021, arXiv:2105.02358, equation 5"};
  }

  template <class T>
  static void normalize(MatrixView<T> a) {
    mixing::masked_softmax(nullptr, a);
  }

  template <class T>
  static Matrix<T> normalize_backward(MatrixView<const T> /*scores*/, MatrixView<const T> a,
                                      MatrixView<const T> d_a) {
    return mixing::softmax_backward(a, d_a);
  }
};

const MixerRegistration kRegistration(std::make_unique<ExternalSoftmax>());

}  // namespace
}  // namespace masque::nn
