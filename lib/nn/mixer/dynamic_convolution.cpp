#include "nn/mixer/convolution.hpp"

namespace masque::nn {
namespace {

/// Taps that every token makes from its own v, shared by the channels of a head.
struct DynamicKernel {
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back(mixing::weight_parameter(
        "kernel.weight", shape.num_attention_heads * shape.kernel_size, shape.hidden_size));
  }
  static Index channels(const MixerShape& shape) {
    return shape.hidden_size / shape.num_attention_heads;
  }

  template <class T>
  static Matrix<T> taps(const MixerShape& shape, MatrixView<const T> weight,
                        MatrixView<const T> v) {
    Matrix<T> out = mixing::project(v, weight);
    mixing::softmax_taps(shape.kernel_size, out.view());
    return out;
  }

  template <class T>
  static void taps_backward(const MixerShape& shape, MatrixView<const T> weight,
                            MatrixView<const T> v, MatrixView<const T> taps,
                            MatrixView<const T> d_taps, MatrixView<T> d_weight, MatrixView<T> d_v) {
    const Matrix<T> d = mixing::softmax_taps_backward(shape.kernel_size, taps, d_taps);
    kernel::matmul_backward<T>(v, weight, d.view(), d_v, d_weight);
  }
};

class Dynamic final : public mixing::Convolution<Dynamic, DynamicKernel> {
 public:
  static MixerInfo describe() {
    return {"dynamic_convolution",
            "input and gate d × d; heads · kernel_size × d; kernel_size = 7, dilation = 1",
            MaskSupport::kCausal,
            true,
            "any length",
            "2 n d² + n d heads kernel_size",
            "Wu 2019, arXiv:1901.10430"};
  }
};

const MixerRegistration kRegistration(std::make_unique<Dynamic>());

}  // namespace
}  // namespace masque::nn
