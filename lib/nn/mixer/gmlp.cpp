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
            "Liu 2021, arXiv:2105.08050",
            {&MixerShape::inner_size}};
  }
};

/// W_ij = w_{j − i}: n² numbers become 2 n − 1.
struct ToeplitzGate {
  static constexpr bool kExtra = false;

  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    const Index n = shape.tokens;
    out.push_back({"spatial.weight", 1, Index{2} * n - 1, 0, 1e-3 / static_cast<double>(n)});
  }

  template <class T>
  static Matrix<T> spatial(const MixerProblem<T>& problem, MatrixView<const T> weight) {
    const Index tokens = problem.x.rows;
    Matrix<T> out(tokens, tokens);
    for (Index i = 0; i < tokens; ++i) {
      for (Index j = 0; j < tokens; ++j) {
        out.view().at(i, j) = weight.at(0, j - i + problem.shape.tokens - 1);
      }
    }
    mixing::hide(problem.blocks, out.view());
    return out;
  }

  template <class T>
  static void spatial_backward(const MixerProblem<T>& problem, MatrixView<T> d_spatial,
                               MatrixView<T> d_weight) {
    mixing::hide(problem.blocks, d_spatial);
    for (Index i = 0; i < d_spatial.rows; ++i) {
      for (Index j = 0; j < d_spatial.columns; ++j) {
        d_weight.at(0, j - i + problem.shape.tokens - 1) += d_spatial.at(i, j);
      }
    }
  }
};

class GmlpToeplitz final : public mixing::GatedMixer<GmlpToeplitz, ToeplitzGate> {
 public:
  static MixerInfo describe() {
    return {"gmlp_toeplitz",
            "as gmlp, with W of 2 n − 1 numbers",
            MaskSupport::kAny,
            true,
            "the smaller distances; b of the first tokens",
            "1.5 n d inner + 0.5 n² inner",
            "Liu 2021, arXiv:2105.08050",
            {&MixerShape::inner_size}};
  }
};

const MixerRegistration kRegistrations[] = {
    MixerRegistration(std::make_unique<Gmlp>()),
    MixerRegistration(std::make_unique<GmlpToeplitz>()),
};

}  // namespace

}  // namespace masque::nn
