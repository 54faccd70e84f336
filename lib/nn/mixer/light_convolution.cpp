#include "nn/mixer/convolution.hpp"

namespace masque::nn {
namespace {

/// Taps that the channels of a head share, and that sum to 1.
struct LightKernel {
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back({"kernel.weight", shape.num_attention_heads, shape.kernel_size, 0, 1});
  }
  static Index channels(const MixerShape& shape) {
    return shape.hidden_size / shape.num_attention_heads;
  }

  template <class T>
  static Matrix<T> taps(const MixerShape& shape, MatrixView<const T> weight,
                        MatrixView<const T> /*v*/) {
    const auto all = mixing::flat(weight);
    Matrix<T> out = Matrix<T>::copy({all.data(), 1, static_cast<Index>(all.size())});
    mixing::softmax_taps(shape.kernel_size, out.view());
    return out;
  }

  template <class T>
  static void taps_backward(const MixerShape& shape, MatrixView<const T> /*weight*/,
                            MatrixView<const T> /*v*/, MatrixView<const T> taps,
                            MatrixView<const T> d_taps, MatrixView<T> d_weight,
                            MatrixView<T> /*d_v*/) {
    const Matrix<T> d = mixing::softmax_taps_backward(shape.kernel_size, taps, d_taps);
    mixing::add_row_sums(d.view(), d_weight);
  }
};

class Light final : public mixing::Convolution<Light, LightKernel> {
 public:
  static MixerInfo describe() {
    return {"light_convolution",
            "input and gate d × d; taps heads × kernel_size; kernel_size = 7, dilation = 1",
            MaskSupport::kCausal,
            false,
            "any length",
            "2 n d² + n d kernel_size",
            "Wu 2019, arXiv:1901.10430"};
  }
};

const MixerRegistration kRegistration(std::make_unique<Light>());

}  // namespace
}  // namespace masque::nn
