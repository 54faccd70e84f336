// Linear attention: for every head, with f(x) = elu(x) + 1 of each number of queries and keys,
//     y_i = Σ_j (f(q_i)·f(k_j)) v_j / Σ_j f(q_i)·f(k_j)        over all j, or j ≤ i
// Katharopoulos et al. 2020, arXiv:2006.16236, equations 5, 7 and 11.
#include <array>
#include <cmath>

#include "kernel/number/scalar.hpp"
#include "nn/mixer/linear_products.hpp"
#include "nn/mixer/mixer_of.hpp"

namespace masque::nn {
namespace {

/// Tokens that the causal sums take at a time.
constexpr Index kChunk = 64;

class LinearAttention final : public MixerOf<LinearAttention> {
 public:
  static MixerInfo describe() {
    return {"linear_attention",
            "query, key, value d × d",
            MaskSupport::kCausal,
            true,
            "any length",
            "3 n d² + 2 n d² / heads",
            "Katharopoulos 2020, arXiv:2006.16236",
            {&MixerShape::num_attention_heads}};
  }

  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    for (const char* name : {"query.weight", "key.weight", "value.weight"})
      out.push_back(mixing::weight_parameter(name, shape.hidden_size, shape.hidden_size));
  }

  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    for (Index head = 0; head < problem.shape.num_attention_heads; ++head) {
      const Head<T> of(problem, head);
      const MatrixView<T> to = mixing::head_columns(problem.shape, y, head);
      for (Index i = 0; i < to.rows; ++i) {
        for (Index c = 0; c < to.columns; ++c) to.at(i, c) = of.mean(i, c);
      }
    }
  }

  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    for (Index head = 0; head < problem.shape.num_attention_heads; ++head) {
      const Head<T> of(problem, head);
      const MatrixView<const T> d_mean = mixing::head_columns(problem.shape, d_y, head);
      const Index size = d_mean.columns;
      Matrix<T> d_out = Matrix<T>::zero(d_mean.rows, size + 1);
      for (Index i = 0; i < d_mean.rows; ++i) {
        const T divisor = of.out.view().at(i, size);
        if (divisor == T{}) continue;
        for (Index c = 0; c < size; ++c) {
          d_out.view().at(i, c) = d_mean.at(i, c) / divisor;
          d_out.view().at(i, size) -= d_mean.at(i, c) * of.mean(i, c) / divisor;
        }
      }
      Matrix<T> d_query = Matrix<T>::zero(d_mean.rows, size);
      Matrix<T> d_key = Matrix<T>::zero(d_mean.rows, size);
      Matrix<T> d_value = Matrix<T>::zero(d_mean.rows, size + 1);
      mixing::add_linear_products_backward<T>(of.reach, kChunk, of.query.view(), of.key.view(),
                                              of.value.view(), d_out.view(), d_query.view(),
                                              d_key.view(), d_value.view());
      times_slope<T>(of.query.view(), d_query.view());
      times_slope<T>(of.key.view(), d_key.view());
      const std::array<MatrixView<const T>, 3> all = {std::as_const(d_query).view(),
                                                      std::as_const(d_key).view(),
                                                      d_value.view().middle_columns(0, size)};
      for (std::size_t k = 0; k < all.size(); ++k) {
        kernel::matmul_backward<T>(
            problem.x, mixing::head_rows(problem.shape, problem.parameters[k], head), all[k],
            gradients.x, mixing::head_rows(problem.shape, gradients.parameters[k], head));
      }
    }
  }

 private:
  /// elu(x) + 1 in place. Its slope is 1 where it is above 1, else it is its own slope.
  template <class T>
  static void features(MatrixView<T> x) {
    for (Index i = 0; i < x.rows; ++i) {
      for (T& element : x.row_span(i))
        element = kernel::reference::real_part(element) > 0 ? element + T(1) : std::exp(element);
    }
  }
  template <class T>
  static void times_slope(MatrixView<const T> features, MatrixView<T> d) {
    for (Index i = 0; i < d.rows; ++i) {
      for (Index c = 0; c < d.columns; ++c) {
        if (kernel::reference::real_part(features.at(i, c)) < 1) d.at(i, c) *= features.at(i, c);
      }
    }
  }

  /// One head of a text.
  template <class T>
  struct Head {
    mixing::Reach reach;
    Matrix<T> query;  ///< f(q) (T, size)
    Matrix<T> key;    ///< f(k)
    Matrix<T> value;  ///< (T, size + 1): the last column is 1, so that its sums are the divisors
    Matrix<T> out;    ///< numerators and divisors

    Head(const MixerProblem<T>& problem, Index head)
        : reach(is_causal(problem.blocks) ? mixing::Reach::kUpToOwn : mixing::Reach::kAll),
          query(projected(problem, 0, head)),
          key(projected(problem, 1, head)),
          value(problem.x.rows, query.columns() + 1),
          out(Matrix<T>::zero(problem.x.rows, query.columns() + 1)) {
      features(query.view());
      features(key.view());
      const Matrix<T> projection = projected(problem, 2, head);
      for (Index i = 0; i < value.rows(); ++i) {
        std::copy_n(projection.view().row(i), projection.columns(), value.view().row(i));
        value.view().at(i, projection.columns()) = T(1);
      }
      mixing::add_linear_products<T>(reach, kChunk, std::as_const(query).view(),
                                     std::as_const(key).view(), std::as_const(value).view(),
                                     out.view());
    }

    /// Of values, weighted; 0 where all weights are (e^x may be).
    T mean(Index i, Index c) const {
      const T divisor = out.view().at(i, query.columns());
      return divisor == T{} ? T{} : out.view().at(i, c) / divisor;
    }

   private:
    static Matrix<T> projected(const MixerProblem<T>& problem, std::size_t p, Index head) {
      return mixing::project(problem.x,
                             mixing::head_rows(problem.shape, problem.parameters[p], head));
    }
  };
};

const MixerRegistration kRegistration(std::make_unique<LinearAttention>());

}  // namespace
}  // namespace masque::nn
