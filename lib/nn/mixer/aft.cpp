// Attention free transformer: with Q, K, V = x W_qᵀ, x W_kᵀ, x W_vᵀ and, for every channel,
//     y_t = σ(Q_t) ⊙ Σ_s e^{K_s + w_ts} V_s / Σ_s e^{K_s + w_ts}       over visible s
// Zhai et al. 2021, arXiv:2105.14103.
#include <array>
#include <vector>

#include "kernel/activation_reference.hpp"
#include "kernel/number/elementary.hpp"
#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn::mixing {

namespace {

/// An attention free transformer. kWithBias: w (n, n) is a parameter; else it is 0. Cost T² d.
template <class Derived, bool kWithBias>
class AttentionFree : public MixerOf<Derived> {
 public:
  /// Adds the parameters for `shape` to `out`.
  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    const Index d = shape.hidden_size;
    for (const char* name : {"query.weight", "key.weight", "value.weight"}) {
      out.push_back(weight_parameter(name, d, d));
    }
    if (kWithBias) out.push_back({"position.weight", shape.tokens, shape.tokens, 0, 0.01});
  }

  /// Sets `y` (T, d) to the mixing of `problem`: see MixerOf.
  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    const Matrix<T> query = project(problem.x, problem.parameters[0]);
    const Matrix<T> key = project(problem.x, problem.parameters[1]);
    const Matrix<T> value = project(problem.x, problem.parameters[2]);
    for_row_ranges(y.rows, y.rows * y.columns, [&](Index begin, Index end) {
      RowMask mask(problem.blocks, y.rows);
      Row<T> row(y.rows, y.columns);
      for (Index t = begin; t < end; ++t) {
        mask.read(t);
        row.read(problem, mask, t, key.view(), value.view());
        for (Index c = 0; c < y.columns; ++c) {
          y.at(t, c) =
              kernel::reference::sigmoid(query.view().at(t, c)) * row.context.view().at(0, c);
        }
      }
    });
  }

  /// From `d_y`, the gradient by y, adds to all `gradients` of `problem`: see MixerOf.
  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const auto p = problem.parameters;
    const Index tokens = d_y.rows;
    const Index d = d_y.columns;
    const Matrix<T> query = project(problem.x, p[0]);
    const Matrix<T> key = project(problem.x, p[1]);
    const Matrix<T> value = project(problem.x, p[2]);
    Matrix<T> d_query(tokens, d);
    Matrix<T> d_key = Matrix<T>::zero(tokens, d);
    Matrix<T> d_value = Matrix<T>::zero(tokens, d);
    RowMask mask(problem.blocks, tokens);
    Row<T> row(tokens, d);
    Matrix<T> d_context(1, d);
    for (Index t = 0; t < tokens; ++t) {
      mask.read(t);
      row.read(problem, mask, t, key.view(), value.view());
      for (Index c = 0; c < d; ++c) {
        const T gate = kernel::reference::sigmoid(query.view().at(t, c));
        d_context.view().at(0, c) = d_y.at(t, c) * gate;
        d_query.view().at(t, c) = d_y.at(t, c) * row.context.view().at(0, c) * gate * (T(1) - gate);
      }
      for (Index s = 0; s < tokens; ++s) {
        if (!mask.visible(s)) continue;
        T d_bias{};
        for (Index c = 0; c < d; ++c) {
          const T weight = row.numerators.view().at(s, c) / row.sum.view().at(0, c);
          const T g = d_context.view().at(0, c) * weight;
          const T d_score = g * (value.view().at(s, c) - row.context.view().at(0, c));
          d_value.view().at(s, c) += g;
          d_key.view().at(s, c) += d_score;
          d_bias += d_score;
        }
        if constexpr (kWithBias) gradients.parameters[3].at(t, s) += d_bias;
      }
    }
    const std::array<const Matrix<T>*, 3> all = {&d_query, &d_key, &d_value};
    for (std::size_t k = 0; k < 3; ++k) {
      kernel::matmul_backward<T>(problem.x, p[k], all[k]->view(), gradients.x,
                                 gradients.parameters[k]);
    }
  }

 private:
  template <class T>
  static T bias(const MixerProblem<T>& problem, Index t, Index s) {
    if constexpr (kWithBias) return problem.parameters[3].at(t, s);
    return T{};
  }

  /// e^x for x ≤ 0.
  static float exp_of(float x) { return kernel::fast_exp_negative(x); }
  template <class T>
  static T exp_of(const T& x) {
    return std::exp(x);
  }

  /// What one token reads, channel by channel.
  template <class T>
  struct Row {
    Row(Index tokens, Index channels)
        : numerators(tokens, channels),
          shift(1, channels),
          sum(1, channels),
          context(1, channels) {}

    Matrix<T> numerators;  ///< rows of hidden tokens are not set
    Matrix<T> shift;       ///< the largest score: a constant, its derivative cancels
    Matrix<T> sum;
    Matrix<T> context;

    void read(const MixerProblem<T>& problem, const RowMask& mask, Index t, MatrixView<const T> key,
              MatrixView<const T> value) {
      using kernel::reference::real_part;
      std::fill(shift.span().begin(), shift.span().end(), static_cast<T>(-HUGE_VAL));
      std::fill(sum.span().begin(), sum.span().end(), T{});
      std::fill(context.span().begin(), context.span().end(), T{});
      if (mask.count() == 0) return;
      for (Index s = 0; s < key.rows; ++s) {
        if (!mask.visible(s)) continue;
        const T b = bias(problem, t, s);
        T* most = shift.data();
        for (Index c = 0; c < key.columns; ++c) {
          const double score = real_part(key.at(s, c) + b);
          if (score > real_part(most[c])) most[c] = static_cast<T>(score);
        }
      }
      for (Index s = 0; s < key.rows; ++s) {
        if (!mask.visible(s)) continue;
        const T b = bias(problem, t, s);
        T* u = numerators.view().row(s);
        for (Index c = 0; c < key.columns; ++c) u[c] = exp_of(key.at(s, c) + b - shift.data()[c]);
        for (Index c = 0; c < key.columns; ++c) {
          sum.data()[c] += u[c];
          context.data()[c] += u[c] * value.at(s, c);
        }
      }
      for (Index c = 0; c < key.columns; ++c) context.data()[c] /= sum.data()[c];
    }
  };
};

}  // namespace

}  // namespace masque::nn::mixing

namespace masque::nn {

namespace {

/// aft, and aft_simple without positions. What the latter takes here is n² d, because masks differ
/// by row; a full or causal one alone would take n d.
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

const MixerRegistration kRegistrations[] = {
    MixerRegistration(std::make_unique<Aft<true>>()),
    MixerRegistration(std::make_unique<Aft<false>>()),
};

}  // namespace

}  // namespace masque::nn
