// The block with a spatial gating unit:
//     [z₁, z₂] = split(gelu(LN(x) U + u));  y = (z₁ ⊙ (W LN(z₂) + b + extra)) V + v
// Liu et al. 2021, arXiv:2105.08050. What W is, and whether something is added to the gate, a class
// says.
#pragma once

#include <vector>

#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn::mixing {

/// W (n, n), near 0 at the start.
struct StaticGate {
  static constexpr bool kExtra = false;  ///< adds nothing to the gate

  /// Adds the parameter W for `shape` to `out`.
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    const Index n = shape.tokens;
    out.push_back({"spatial.weight", n, n, 0, 1e-3 / static_cast<double>(n)});
  }
  /// W (T, T) from `weight` (n, n) for `problem`, hidden pairs 0.
  template <class T>
  static Matrix<T> spatial(const MixerProblem<T>& problem, MatrixView<const T> weight) {
    return static_matrix(problem, weight);
  }
  /// The gradient of spatial() for `problem`: adds `d_spatial`, which is changed, to
  /// `d_weight` where visible.
  template <class T>
  static void spatial_backward(const MixerProblem<T>& problem, MatrixView<T> d_spatial,
                               MatrixView<T> d_weight) {
    static_matrix_backward(problem, d_spatial, d_weight);
  }
};

/// What passes through the block of one sequence.
template <class T>
struct GatedState {
  Matrix<T> norm;     ///< LN(x) (T, d)
  Matrix<T> before;   ///< input of gelu (T, inner)
  Matrix<T> z;        ///< [z₁, z₂]
  Matrix<T> inside;   ///< LN(z₂) (T, inner / 2)
  Matrix<T> spatial;  ///< W (T, T)
  Matrix<T> gate;     ///< (T, inner / 2)
  Matrix<T> gated;    ///< z₁ ⊙ gate
};

/// gMLP with the gate of the class Gate: StaticGate or one with its methods. With kExtra Gate also
/// has the following, p being the place of its parameters:
///
///     static void declare_extra(const MixerShape&, Index half, std::vector<MixerParameter>&);
///     template <class T>  // adds to gate (T, half)
///     static void add_extra(const MixerProblem<T>&, std::size_t p, MatrixView<const T> norm,
///                           MatrixView<T> gate);
///     template <class T>  // adds to d_norm
///     static void extra_backward(const MixerProblem<T>&, std::size_t p, MatrixView<const T> norm,
///                                MatrixView<const T> d_gate, MatrixView<T> d_norm,
///                                const MixerGradients<T>&);
template <class Derived, class Gate>
class GatedMixer : public MixerOf<Derived> {
 public:
  /// Adds the parameters for `shape` to `out`. Throws UsageError for an odd inner_size.
  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    const Index d = shape.hidden_size;
    const Index half = half_of(shape);
    out.push_back(constant_parameter("norm.weight", 1, d, 1));
    out.push_back(constant_parameter("norm.bias", 1, d, 0));
    out.push_back(weight_parameter("in.weight", Index{2} * half, d));
    out.push_back(constant_parameter("in.bias", 1, Index{2} * half, 0));
    out.push_back(constant_parameter("gate_norm.weight", 1, half, 1));
    out.push_back(constant_parameter("gate_norm.bias", 1, half, 0));
    Gate::declare(shape, out);
    out.push_back(constant_parameter("spatial.bias", 1, shape.tokens, 1));
    out.push_back(weight_parameter("out.weight", d, half));
    out.push_back(constant_parameter("out.bias", 1, d, 0));
    if constexpr (Gate::kExtra) Gate::declare_extra(shape, half, out);
  }

  /// Sets `y` (T, d) to the mixing of `problem`: see MixerOf.
  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    const GatedState<T> s = state_of(problem);
    kernel::matmul_forward<T>(s.gated.view(), problem.parameters[kOut], y);
    add_to_rows(problem.parameters[kOut + 1], y);
  }

  /// From `d_y`, the gradient by y, adds to all `gradients` of `problem`: see MixerOf.
  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const auto p = problem.parameters;
    const auto d = gradients.parameters;
    const Index half = half_of(problem.shape);
    const GatedState<T> s = state_of(problem);
    Matrix<T> d_gated = Matrix<T>::zero(s.gated.rows(), half);
    kernel::matmul_backward<T>(s.gated.view(), p[kOut], d_y, d_gated.view(), d[kOut]);
    add_row_sums(d_y, d[kOut + 1]);
    Matrix<T> d_gate(s.gated.rows(), half);
    Matrix<T> d_z = Matrix<T>::zero(s.z.rows(), s.z.columns());
    for (Index i = 0; i < d_gate.rows(); ++i) {
      for (Index c = 0; c < half; ++c) {
        const T g = d_gated.view().at(i, c);
        d_gate.view().at(i, c) = g * s.z.view().at(i, c);
        d_z.view().at(i, c) = g * s.gate.view().at(i, c);
        d[kBias].at(0, i) += d_gate.view().at(i, c);
      }
    }
    Matrix<T> d_norm = Matrix<T>::zero(s.norm.rows(), s.norm.columns());
    if constexpr (Gate::kExtra) {
      Gate::template extra_backward<T>(problem, kExtraFirst, s.norm.view(), d_gate.view(),
                                       d_norm.view(), gradients);
    }
    Matrix<T> d_spatial = project(std::as_const(d_gate).view(), s.inside.view());
    Gate::spatial_backward(problem, d_spatial.view(), d[kSpatial]);
    Matrix<T> d_inside = Matrix<T>::zero(s.inside.rows(), half);
    add_transposed_product<T>(s.spatial.view(), d_gate.view(), d_inside.view());
    layer_norm_backward<T>(s.z.view().middle_columns(half, half), p[4], d_inside.view(),
                           d_z.view().middle_columns(half, half), d[4], d[5]);
    const Matrix<T> d_before = activated_backward<T>(kernel::Activation::kGelu, s.before.view(),
                                                     std::as_const(d_z).view());
    add_row_sums(d_before.view(), d[3]);
    kernel::matmul_backward<T>(s.norm.view(), p[2], d_before.view(), d_norm.view(), d[2]);
    layer_norm_backward<T>(problem.x, p[0], d_norm.view(), gradients.x, d[0], d[1]);
  }

 private:
  static constexpr std::size_t kSpatial = 6;
  static constexpr std::size_t kBias = 7;
  static constexpr std::size_t kOut = 8;
  static constexpr std::size_t kExtraFirst = 10;

  static Index half_of(const MixerShape& shape) {
    const Index inner = shape.inner_size > 0 ? shape.inner_size : Index{4} * shape.hidden_size;
    if (inner % 2 != 0) {
      throw UsageError("inner_size " + std::to_string(inner) + " is odd, expected an even number");
    }
    return inner / 2;
  }

  template <class T>
  static GatedState<T> state_of(const MixerProblem<T>& problem) {
    const auto p = problem.parameters;
    const Index half = half_of(problem.shape);
    GatedState<T> s;
    s.norm = layer_norm(problem.x, p[0], p[1]);
    s.before = project(std::as_const(s.norm).view(), p[2]);
    add_to_rows(p[3], s.before.view());
    s.z = activated<T>(kernel::Activation::kGelu, s.before.view());
    s.inside = layer_norm(std::as_const(s.z).view().middle_columns(half, half), p[4], p[5]);
    s.spatial = Gate::spatial(problem, p[kSpatial]);
    s.gate = product(std::as_const(s.spatial).view(), std::as_const(s.inside).view());
    for (Index i = 0; i < s.gate.rows(); ++i) {
      for (T& element : s.gate.view().row_span(i)) element += p[kBias].at(0, i);
    }
    if constexpr (Gate::kExtra) {
      Gate::template add_extra<T>(problem, kExtraFirst, s.norm.view(), s.gate.view());
    }
    s.gated = Matrix<T>(s.gate.rows(), half);
    for (Index i = 0; i < s.gate.rows(); ++i) {
      for (Index c = 0; c < half; ++c) {
        s.gated.view().at(i, c) = s.z.view().at(i, c) * s.gate.view().at(i, c);
      }
    }
    return s;
  }
};

}  // namespace masque::nn::mixing
