// With the paper's double normalization: softmax over tokens, then every row divided by its sum.
// With Z_j = Σ_i e^{s_ij} this is a softmax over memories of s_ij − log Z_j, and Z_j is all that a
// token learns of the others.
#include "nn/mixer/external_attention.hpp"

#include "kernel/scalar.hpp"

namespace masque::nn {
namespace {

class External final : public mixing::ExternalAttention<External> {
 public:
  static MixerInfo describe() {
    return {"external_attention",
            "memories of keys and values inner × d; inner = 64",
            MaskSupport::kFull,
            true,
            "any length",
            "2 n d inner",
            "Guo 2021, arXiv:2105.02358"};
  }

  template <class T>
  static void normalize(MatrixView<T> a) {
    const Matrix<T> logs = column_logs<T>(a);
    for (Index i = 0; i < a.rows; ++i) {
      for (Index j = 0; j < a.columns; ++j) a.at(i, j) -= logs.view().at(0, j);
    }
    mixing::masked_softmax(nullptr, a);
  }

  template <class T>
  static Matrix<T> normalize_backward(MatrixView<const T> scores, MatrixView<const T> a,
                                      MatrixView<const T> d_a) {
    Matrix<T> d_scores = mixing::softmax_backward(a, d_a);
    const Matrix<T> logs = column_logs(scores);
    for (Index j = 0; j < scores.columns; ++j) {
      T d_log{};
      for (Index i = 0; i < scores.rows; ++i) d_log -= d_scores.view().at(i, j);
      for (Index i = 0; i < scores.rows; ++i) {
        d_scores.view().at(i, j) += d_log * std::exp(scores.at(i, j) - logs.view().at(0, j));
      }
    }
    return d_scores;
  }

 private:
  /// log Z_j (1, S).
  template <class T>
  static Matrix<T> column_logs(MatrixView<const T> scores) {
    Matrix<T> out(1, scores.columns);
    for (Index j = 0; j < scores.columns; ++j) {
      double largest = -HUGE_VAL;
      for (Index i = 0; i < scores.rows; ++i) {
        largest = std::max(largest, kernel::reference::real_part(scores.at(i, j)));
      }
      T sum{};
      for (Index i = 0; i < scores.rows; ++i) {
        sum += std::exp(scores.at(i, j) - static_cast<T>(largest));
      }
      out.view().at(0, j) = static_cast<T>(largest) + std::log(sum);
    }
    return out;
  }
};

const MixerRegistration kRegistration(std::make_unique<External>());

}  // namespace
}  // namespace masque::nn
