// Convolutions over tokens, of gated inputs:
//     v = (x W_iᵀ) ⊙ σ(x W_gᵀ);  y_ic = Σ_k w_k v_{i + (k − left) · dilation, c}
// Taps outside the sequence read 0. left is (K − 1) / 2 for the full mask, K − 1 for the causal
// one; a mask of one token, when there is one, counts as causal, so that a text may grow. Wu et al.
// 2019, arXiv:1901.10430; Tay et al. 2021, arXiv:2105.03322.
#include <vector>

#include "kernel/activation_reference.hpp"
#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn::mixing {

namespace {

/// Which token a tap of a convolution reads.
struct Taps {
  Index count;     ///< K
  Index left;      ///< taps before the token's own
  Index dilation;  ///< tokens between taps
  Index tokens;    ///< T

  /// The taps of `shape` for `length` tokens: causal if the mask `blocks` is, else
  /// centered. Cost as is_causal().
  Taps(const MixerShape& shape, const mask::BlockMap* blocks, Index length)
      : count(shape.kernel_size),
        left(is_causal(blocks) ? shape.kernel_size - 1 : (shape.kernel_size - 1) / 2),
        dilation(shape.dilation),
        tokens(length) {}

  /// The token that tap `k` of token `i` reads; −1: none.
  Index read(Index i, Index k) const {
    const Index j = i + (k - left) * dilation;
    return j >= 0 && j < tokens ? j : -1;
  }
};

/// A gated convolution. The class Kernel says what the taps of a token are:
///
///     static void declare(const MixerShape&, std::vector<MixerParameter>&);  // one parameter
///     static Index channels(const MixerShape&);  // that share their taps
///     template <class T>  // taps (T or 1, rows · K): those of row r in columns r K …
///     static Matrix<T> taps(const MixerShape&, MatrixView<const T> weight, MatrixView<const T> v);
///     template <class T>  // adds to d_weight and d_v
///     static void taps_backward(const MixerShape&, MatrixView<const T> weight,
///                               MatrixView<const T> v, MatrixView<const T> taps,
///                               MatrixView<const T> d_taps, MatrixView<T> d_weight,
///                               MatrixView<T> d_v);
template <class Derived, class Kernel>
class Convolution : public MixerOf<Derived> {
 public:
  /// Adds the parameters for `shape` to `out`.
  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    out.push_back(weight_parameter("in.weight", shape.hidden_size, shape.hidden_size));
    out.push_back(weight_parameter("in_gate.weight", shape.hidden_size, shape.hidden_size));
    Kernel::declare(shape, out);
  }

  /// Sets `y` (T, d) to the mixing of `problem`: see MixerOf.
  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    const Matrix<T> v = gated(problem);
    const Matrix<T> w = Kernel::taps(problem.shape, problem.parameters[2], v.view());
    const Taps taps(problem.shape, problem.blocks, y.rows);
    const Index shared = Kernel::channels(problem.shape);
    for_row_ranges(y.rows, taps.count * y.columns, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        std::fill_n(y.row(i), y.columns, T{});
        const T* row = w.view().row(w.rows() == 1 ? 0 : i);
        for (Index k = 0; k < taps.count; ++k) {
          const Index j = taps.read(i, k);
          if (j < 0) continue;
          for (Index c = 0; c < y.columns; ++c) {
            y.at(i, c) += row[c / shared * taps.count + k] * v.view().at(j, c);
          }
        }
      }
    });
  }

  /// From `d_y`, the gradient by y, adds to all `gradients` of `problem`: see MixerOf.
  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const auto p = problem.parameters;
    const auto d = gradients.parameters;
    const Matrix<T> v = gated(problem);
    const Matrix<T> w = Kernel::taps(problem.shape, p[2], v.view());
    const Taps taps(problem.shape, problem.blocks, d_y.rows);
    const Index shared = Kernel::channels(problem.shape);
    Matrix<T> d_v = Matrix<T>::zero(v.rows(), v.columns());
    Matrix<T> d_w = Matrix<T>::zero(w.rows(), w.columns());
    for (Index i = 0; i < d_y.rows; ++i) {
      const Index r = w.rows() == 1 ? 0 : i;
      for (Index k = 0; k < taps.count; ++k) {
        const Index j = taps.read(i, k);
        if (j < 0) continue;
        for (Index c = 0; c < d_y.columns; ++c) {
          const Index at = c / shared * taps.count + k;
          d_v.view().at(j, c) += w.view().at(r, at) * d_y.at(i, c);
          d_w.view().at(r, at) += v.view().at(j, c) * d_y.at(i, c);
        }
      }
    }
    Kernel::template taps_backward<T>(problem.shape, p[2], v.view(), w.view(), d_w.view(), d[2],
                                      d_v.view());
    const Matrix<T> in = project(problem.x, p[0]);
    const Matrix<T> gate = project(problem.x, p[1]);
    Matrix<T> d_in(v.rows(), v.columns());
    Matrix<T> d_gate(v.rows(), v.columns());
    for (std::size_t k = 0; k < d_v.span().size(); ++k) {
      const T s = kernel::reference::sigmoid(gate.span()[k]);
      d_in.span()[k] = d_v.span()[k] * s;
      d_gate.span()[k] = d_v.span()[k] * in.span()[k] * s * (T(1) - s);
    }
    kernel::matmul_backward<T>(problem.x, p[0], std::as_const(d_in).view(), gradients.x, d[0]);
    kernel::matmul_backward<T>(problem.x, p[1], std::as_const(d_gate).view(), gradients.x, d[1]);
  }

 private:
  template <class T>
  static Matrix<T> gated(const MixerProblem<T>& problem) {
    Matrix<T> out = project(problem.x, problem.parameters[0]);
    const Matrix<T> gate = project(problem.x, problem.parameters[1]);
    for (std::size_t k = 0; k < out.span().size(); ++k) {
      out.span()[k] *= kernel::reference::sigmoid(gate.span()[k]);
    }
    return out;
  }
};

/// Replaces each group of `count` = K columns in each row of `taps` by its softmax.
template <class T>
void softmax_taps(Index count, MatrixView<T> taps) {
  for (Index first = 0; first < taps.columns; first += count) {
    masked_softmax(nullptr, taps.middle_columns(first, count));
  }
}

/// From `d_taps`, the gradient by `taps`, the result of softmax_taps with
/// `count`, to that by its input.
template <class T>
Matrix<T> softmax_taps_backward(Index count, MatrixView<const T> taps, MatrixView<const T> d_taps) {
  Matrix<T> out(taps.rows, taps.columns);
  for (Index first = 0; first < taps.columns; first += count) {
    const Matrix<T> part =
        softmax_backward(taps.middle_columns(first, count), d_taps.middle_columns(first, count));
    for (Index i = 0; i < taps.rows; ++i) {
      std::copy_n(part.view().row(i), count, out.view().row(i) + first);
    }
  }
  return out;
}

}  // namespace

}  // namespace masque::nn::mixing

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
            "Tay 2021, arXiv:2105.03322",
            {&MixerShape::kernel_size, &MixerShape::dilation}};
  }
};

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
            "Wu 2019, arXiv:1901.10430",
            {&MixerShape::num_attention_heads, &MixerShape::kernel_size, &MixerShape::dilation}};
  }
};

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
            "Wu 2019, arXiv:1901.10430",
            {&MixerShape::num_attention_heads, &MixerShape::kernel_size, &MixerShape::dilation}};
  }
};

const MixerRegistration kRegistrations[] = {
    MixerRegistration(std::make_unique<Depthwise>()),
    MixerRegistration(std::make_unique<Light>()),
    MixerRegistration(std::make_unique<Dynamic>()),
};

}  // namespace

}  // namespace masque::nn
