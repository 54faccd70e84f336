#include "nn/mixer/convolution.hpp"

namespace masque::nn {
namespace {

/// Taps of every channel, as they are.
struct DepthwiseKernel {
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back({"kernel.weight", shape.hidden_size, shape.kernel_size, 0,
                   1 / std::sqrt(static_cast<double>(shape.kernel_size))});
  }
  static Index channels(const MixerShape& /*shape*/) { return 1; }

  template <class T>
  static Matrix<T> taps(const MixerShape& /*shape*/, MatrixView<const T> weight,
                        MatrixView<const T> /*v*/) {
    const auto all = mixing::flat(weight);
    return Matrix<T>::copy({all.data(), 1, static_cast<Index>(all.size())});
  }

  template <class T>
  static void taps_backward(const MixerShape& /*shape*/, MatrixView<const T> /*weight*/,
                            MatrixView<const T> /*v*/, MatrixView<const T> /*taps*/,
                            MatrixView<const T> d_taps, MatrixView<T> d_weight,
                            MatrixView<T> /*d_v*/) {
    mixing::add_row_sums(d_taps, d_weight);
  }
};

class Depthwise final : public mixing::Convolution<Depthwise, DepthwiseKernel> {
 public:
  static MixerInfo describe() {
    return {"depthwise_convolution",
            "input and gate d × d; taps d × kernel_size; kernel_size = 7, dilation = 1",
            MaskSupport::kCausal,
            false,
            "any length",
            "2 n d² + n d kernel_size",
            "Tay 2021, arXiv:2105.03322"};
  }
};

const MixerRegistration kRegistration(std::make_unique<Depthwise>());

}  // namespace
}  // namespace masque::nn
