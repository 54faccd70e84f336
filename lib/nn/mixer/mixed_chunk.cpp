// Mixed chunk attention of FLASH: squares of products within a chunk of c tokens, linear products
// beyond it. With U, V = swish(x W_uᵀ), swish(x W_vᵀ), Z = swish(x W_zᵀ) of width a, and four
// vectors of each row of Z, X_m = scale_m ⊙ Z + offset_m (quadratic query and key, linear query and
// key):
//     y_i = U_i ⊙ (1/c Σ_j max(Q_i·K_j / √a + w_{j−i}, 0)² V_j + 1/n_i Q′_i Σ_s K′_sᵀ V_s)
// j: the tokens of the chunk (up to i where the mask is causal); s: all tokens (those of the chunks
// in front where it is causal), n_i of them. Hua et al. 2022, arXiv:2202.10447, section 3.2 and
// appendix; the divisors are those of Su 2022, https://kexue.fm/archives/8934. Divisors by the
// tokens in reach keep what a causal row says from how long the text is.
#include <array>
#include <cmath>

#include "kernel/activation_reference.hpp"
#include "nn/mixer/linear_products.hpp"
#include "nn/mixer/mixer_of.hpp"

namespace masque::nn {
namespace {

using kernel::Activation;

class MixedChunk final : public MixerOf<MixedChunk> {
 public:
  static MixerInfo describe() {
    return {"mixed_chunk",
            "gate, value d × d; shared a × d; scale, offset 4 × a; position 2 c − 1; a = "
            "attention_size = 64, c = chunk_size = 256",
            MaskSupport::kCausal,
            true,
            "any length",
            "2 n d² + 3 n d a + n c (a + d)",
            "Hua 2022, arXiv:2202.10447",
            {&MixerShape::attention_size, &MixerShape::chunk_size}};
  }

  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    const Index d = shape.hidden_size;
    out.push_back(mixing::weight_parameter("gate.weight", d, d));
    out.push_back(mixing::weight_parameter("value.weight", d, d));
    out.push_back(mixing::weight_parameter("shared.weight", shape.attention_size, d));
    out.push_back(mixing::constant_parameter("scale.weight", kVectors, shape.attention_size, 1));
    out.push_back(mixing::constant_parameter("offset.weight", kVectors, shape.attention_size, 0));
    out.push_back({"position.weight", 1, Index{2} * shape.chunk_size - 1, 0, 0.02});
  }

  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    const State<T> s(problem);
    for (Index i = 0; i < y.rows; ++i) {
      for (Index c = 0; c < y.columns; ++c)
        y.at(i, c) = s.gate.view().at(i, c) * s.context.view().at(i, c);
    }
  }

  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const State<T> s(problem);
    const Index tokens = d_y.rows;
    Matrix<T> d_gate(tokens, d_y.columns);
    Matrix<T> d_context(tokens, d_y.columns);
    for (Index i = 0; i < tokens; ++i) {
      for (Index c = 0; c < d_y.columns; ++c) {
        d_gate.view().at(i, c) = d_y.at(i, c) * s.context.view().at(i, c);
        d_context.view().at(i, c) = d_y.at(i, c) * s.gate.view().at(i, c);
      }
    }
    Matrix<T> d_value = Matrix<T>::zero(tokens, d_y.columns);
    Vectors<T> d_vectors;
    for (Matrix<T>& one : d_vectors) one = Matrix<T>::zero(tokens, s.shared.columns());
    for_chunks(problem, [&](Index first, Index rows) {
      chunk_backward<T>(problem, s, d_context.view(), first, rows, d_vectors, d_value.view(),
                        gradients.parameters[5]);
    });
    mixing::add_linear_products_backward<T>(
        s.reach, problem.shape.chunk_size, s.vectors[2].view(), s.vectors[3].view(), s.value.view(),
        d_context.view(), d_vectors[2].view(), d_vectors[3].view(), d_value.view());
    divide_by_reach(problem, s.reach, d_vectors[2].view());
    const Matrix<T> d_shared = vectors_backward(problem, s, d_vectors, gradients);
    const std::array<const Matrix<T>*, 3> before = {&s.gate_before, &s.value_before,
                                                    &s.shared_before};
    const std::array<const Matrix<T>*, 3> after = {&d_gate, &d_value, &d_shared};
    for (std::size_t k = 0; k < before.size(); ++k) {
      const Matrix<T> d =
          mixing::activated_backward<T>(Activation::kSwish, before[k]->view(), after[k]->view());
      kernel::matmul_backward<T>(problem.x, problem.parameters[k], d.view(), gradients.x,
                                 gradients.parameters[k]);
    }
  }

 private:
  static constexpr Index kVectors = 4;
  template <class T>
  using Vectors = std::array<Matrix<T>, kVectors>;

  template <class T, class Work>
  static void for_chunks(const MixerProblem<T>& problem, const Work& work) {
    mixing::for_chunks(problem.x.rows, problem.shape.chunk_size, true, work);
  }

  /// Rows of x by the number of tokens in their reach; those without any stay (they are 0, or get
  /// no gradient).
  template <class T>
  static void divide_by_reach(const MixerProblem<T>& problem, mixing::Reach reach,
                              MatrixView<T> x) {
    for_chunks(problem, [&](Index first, Index rows) {
      const Index count = reach == mixing::Reach::kAll ? x.rows : first;
      if (count == 0) return;
      for (Index i = first; i < first + rows; ++i) {
        for (T& element : x.row_span(i)) element /= static_cast<T>(static_cast<double>(count));
      }
    });
  }

  /// What passes through one text.
  template <class T>
  struct State {
    mixing::Reach reach;
    Matrix<T> gate_before, value_before, shared_before;  ///< of swish
    Matrix<T> gate, value, shared;
    Vectors<T> vectors;  ///< quadratic query, key, linear query (by the tokens in reach), key
    Matrix<T> context;   ///< (T, d)

    explicit State(const MixerProblem<T>& problem)
        // A mask of one token counts as causal, so that a text may grow.
        : reach(is_causal(problem.blocks) ? mixing::Reach::kChunksBefore : mixing::Reach::kAll),
          gate_before(mixing::project(problem.x, problem.parameters[0])),
          value_before(mixing::project(problem.x, problem.parameters[1])),
          shared_before(mixing::project(problem.x, problem.parameters[2])),
          gate(mixing::activated<T>(Activation::kSwish, gate_before.view())),
          value(mixing::activated<T>(Activation::kSwish, value_before.view())),
          shared(mixing::activated<T>(Activation::kSwish, shared_before.view())),
          context(Matrix<T>::zero(problem.x.rows, problem.x.columns)) {
      for (Index m = 0; m < kVectors; ++m) {
        Matrix<T>& vector = vectors[static_cast<std::size_t>(m)];
        vector = Matrix<T>(shared.rows(), shared.columns());
        for (Index i = 0; i < shared.rows(); ++i) {
          for (Index c = 0; c < shared.columns(); ++c) {
            vector.view().at(i, c) = problem.parameters[3].at(m, c) * shared.view().at(i, c) +
                                     problem.parameters[4].at(m, c);
          }
        }
      }
      divide_by_reach(problem, reach, vectors[2].view());
      for_chunks(problem, [&](Index first, Index rows) {
        Matrix<T> weights = scores(problem, first, rows);
        kernel::activation_forward(Activation::kSquaredRelu, weights.view());
        finish(problem, weights.view());
        kernel::add_to<T>(
            mixing::product<T>(weights.view(), value.view().middle_rows(first, rows)).view(),
            context.view().middle_rows(first, rows));
      });
      mixing::add_linear_products<T>(reach, problem.shape.chunk_size, vectors[2].view(),
                                     vectors[3].view(), value.view(), context.view());
    }

    /// Q·K / √a + w of a chunk (rows, rows).
    Matrix<T> scores(const MixerProblem<T>& problem, Index first, Index rows) const {
      Matrix<T> out = mixing::project(vectors[0].view().middle_rows(first, rows),
                                      vectors[1].view().middle_rows(first, rows));
      const T* bias = problem.parameters[5].row(0) + problem.shape.chunk_size - 1;
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < rows; ++j)
          out.view().at(i, j) = out.view().at(i, j) * scale<T>(problem) + bias[j - i];
      }
      return out;
    }

    /// Squares, or what is worth their gradients, become weights: divided, following tokens hidden.
    void finish(const MixerProblem<T>& problem, MatrixView<T> squares) const {
      const auto chunk = static_cast<T>(static_cast<double>(problem.shape.chunk_size));
      for (Index i = 0; i < squares.rows; ++i) {
        for (T& element : squares.row_span(i)) element /= chunk;
      }
      if (reach != mixing::Reach::kAll) mixing::hide_following(squares);
    }
  };

  template <class T>
  static T scale(const MixerProblem<T>& problem) {
    return static_cast<T>(1 / std::sqrt(static_cast<double>(problem.shape.attention_size)));
  }

  template <class T>
  static void chunk_backward(const MixerProblem<T>& problem, const State<T>& s,
                             MatrixView<const T> d_context, Index first, Index rows,
                             Vectors<T>& d_vectors, MatrixView<T> d_value, MatrixView<T> d_bias) {
    const Matrix<T> scores = s.scores(problem, first, rows);
    Matrix<T> weights = mixing::activated<T>(Activation::kSquaredRelu, scores.view());
    s.finish(problem, weights.view());
    const MatrixView<const T> d_own = d_context.middle_rows(first, rows);
    mixing::add_transposed_product<T>(weights.view(), d_own, d_value.middle_rows(first, rows));
    Matrix<T> d_weights = mixing::project<T>(d_own, s.value.view().middle_rows(first, rows));
    s.finish(problem, d_weights.view());
    Matrix<T> d_scores = mixing::activated_backward<T>(Activation::kSquaredRelu, scores.view(),
                                                       std::as_const(d_weights).view());
    T* bias = d_bias.row(0) + problem.shape.chunk_size - 1;
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < rows; ++j) {
        bias[j - i] += d_scores.view().at(i, j);
        d_scores.view().at(i, j) *= scale<T>(problem);
      }
    }
    kernel::matmul_backward<T>(s.vectors[0].view().middle_rows(first, rows),
                               s.vectors[1].view().middle_rows(first, rows), d_scores.view(),
                               d_vectors[0].view().middle_rows(first, rows),
                               d_vectors[1].view().middle_rows(first, rows));
  }

  /// Adds to the gradients of scale and offset; gives that of Z.
  template <class T>
  static Matrix<T> vectors_backward(const MixerProblem<T>& problem, const State<T>& s,
                                    const Vectors<T>& d_vectors,
                                    const MixerGradients<T>& gradients) {
    Matrix<T> d_shared = Matrix<T>::zero(s.shared.rows(), s.shared.columns());
    for (Index m = 0; m < kVectors; ++m) {
      const MatrixView<const T> d = d_vectors[static_cast<std::size_t>(m)].view();
      for (Index i = 0; i < d.rows; ++i) {
        for (Index c = 0; c < d.columns; ++c) {
          gradients.parameters[3].at(m, c) += d.at(i, c) * s.shared.view().at(i, c);
          gradients.parameters[4].at(m, c) += d.at(i, c);
          d_shared.view().at(i, c) += d.at(i, c) * problem.parameters[3].at(m, c);
        }
      }
    }
    return d_shared;
  }
};

const MixerRegistration kRegistration(std::make_unique<MixedChunk>());

}  // namespace
}  // namespace masque::nn
