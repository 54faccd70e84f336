// Runs a case of the table in any number type: its inputs, its result, its gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>
#include <vector>

#include "base/random/random.hpp"
#include "kernel/dropout.hpp"
#include "kernel/embedding.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/optimizer.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/linear.hpp"
#include "kernel/product/pack_strips.hpp"
#include "kernel/product/trained_linear.hpp"
#include "kernel/softmax/exp_sum_rows.hpp"
#include "kernel/softmax/log_probability.hpp"
#include "kernel/softmax/softmax.hpp"
#include "kernel/softmax/vocabulary_loss.hpp"
#include "support/kernel_cases.hpp"

namespace masque::test {

template <class T>
using View = MatrixView<const T>;

/// The matrices that the result is differentiable in, and what else the kernel wants.
template <class T>
class KernelRun {
 public:
  /// Values are float numbers in every type, so that types can be compared. Gradients start at
  /// 0.25.
  explicit KernelRun(const KernelCase& kernel_case) : c(kernel_case) {
    const Index rows = c.rows, columns = c.columns;
    if (c.operation == Operation::kVocabularyLoss) {
      result.resize(1, 1);
    } else if (c.operation == Operation::kLogProbability || c.operation == Operation::kExpSum) {
      result.resize(1, rows);
    } else {
      result.resize(rows, columns);
    }
    switch (c.operation) {
      case Operation::kLinear:
      case Operation::kLogProbability:
        add(rows, c.inputs), add(columns, c.inputs), add(1, columns);
        linear_ = make_linear();
        break;
      case Operation::kTrainedLinear:
        add(rows, c.inputs), add(columns, c.inputs), add(1, columns);
        break;
      case Operation::kVocabularyLoss:
        add(rows, c.inputs), add(columns, c.inputs), add(1, columns);
        // Logits as models have them: far larger ones leave probabilities too small for a float.
        // A power of two, so that they are float numbers still.
        for (T& x : inputs[0].span()) {
          x *= T(std::exp2(-std::round(std::log2(static_cast<double>(c.inputs)) / 2)));
        }
        break;
      case Operation::kMatmul: add(rows, c.inputs), add(columns, c.inputs); break;
      case Operation::kMatmulPlain: add(rows, c.inputs), add(c.inputs, columns); break;
      case Operation::kGated: add(rows, columns), add(rows, columns); break;
      case Operation::kNorm: add(rows, columns), add(1, columns), add(1, columns); break;
      case Operation::kResidualNorm:
        add(rows, columns), add(1, columns), add(1, columns), add(rows, columns);
        break;
      case Operation::kEmbedding: add(kTableRows, columns); break;
      case Operation::kAdamW:
      case Operation::kLamb:
        add(rows, columns), add(rows, columns);
        first_moment_ = Matrix<T>::zero(rows, columns);
        second_moment_ = Matrix<T>::zero(rows, columns);
        copied();
        break;
      case Operation::kPack: add(rows, columns), packed_.resize(strip_count(columns), rows); break;
      case Operation::kPackTransposed:
        add(rows, columns), packed_.resize(strip_count(rows), columns);
        break;
      default: add(rows, columns);
    }
    for (Index i = 0; i < rows; ++i) {
      const Index bound = c.operation == Operation::kEmbedding ? kTableRows : columns;
      ids_.push_back(static_cast<TokenId>(i * i * 7919 % bound));
      positions_.push_back(3 * i + 1);
      row_weights_.push_back(1.0 / static_cast<double>(1 + i % 3));
    }
    if (c.masked) {
      const Index words = (columns + 63) / 64;
      for (Index i = 0; i < rows * words; ++i) {
        const auto block = RandomStream(7, "bits").block(static_cast<std::uint64_t>(i));
        bits_.push_back(i / words == 1 ? 0 : (std::uint64_t{block[0]} << 32U | block[1]) | 1U);
      }
    }
    d_result.resize(result.rows(), result.columns());
    fill(d_result, 99);
    for (const auto& input : inputs) {
      gradients.emplace_back(input.rows(), input.columns());
      for (T& value : gradients.back().span()) value = T(0.25);
    }
  }

  void forward() {
    switch (c.operation) {
      case Operation::kLinear: linear_.forward(in(0), result.view()); break;
      case Operation::kMatmul: kernel::matmul_forward(in(0), in(1), result.view()); break;
      case Operation::kMatmulPlain: kernel::matmul_plain(in(0), in(1), result.view()); break;
      case Operation::kActivation: kernel::activation_forward(c.activation, copied()); break;
      case Operation::kGated:
        kernel::gated_forward(c.activation, in(0), in(1), result.view());
        break;
      case Operation::kNorm:
        kernel::norm_forward(c.norm, in(0), row(1), row(2), kEpsilon, result.view());
        break;
      case Operation::kResidualNorm:
        kernel::residual_norm_forward(c.norm, in(0), in(3), row(1), row(2), kEpsilon,
                                      MatrixView<T>(), result.view());
        break;
      case Operation::kSoftmax: kernel::softmax_forward<T>(copied(), bits_); break;
      case Operation::kEmbedding:
        kernel::embedding_forward(in(0), std::span<const TokenId>(ids_), result.view());
        break;
      case Operation::kRotary:
        kernel::rotary_forward<T>(c.layout, table(), c.head_size, copied());
        break;
      case Operation::kLogProbability: {
        std::vector<double> out(ids_.size());
        kernel::log_probability_forward(in(0), linear_, 0.5, ids_, out);
        for (std::size_t i = 0; i < out.size(); ++i) {
          result.span()[i] = static_cast<T>(out[i]);
        }
        break;
      }
      case Operation::kTrainedLinear:
        trained_.pack(std::vector<View<T>>{in(1)}, precision());
        trained_.forward(in(0), row(2), result.view());
        break;
      case Operation::kVocabularyLoss:
        result.data()[0] =
            static_cast<T>(kernel::vocabulary_loss(task(row_weights_), precision(), {}).sum);
        break;
      case Operation::kDropout:
        kernel::dropout_forward(0.3, RandomStream(5, "dropout"), 3, copied());
        break;
      case Operation::kExpSum:
      case Operation::kPack:
      case Operation::kPackTransposed:
      case Operation::kAdamW:
      case Operation::kLamb:
        // Not of complex numbers: nothing is differentiated here.
        if constexpr (std::is_floating_point_v<T>) forward_only();
        break;
    }
  }

  /// What forward() left in another order than that of the result.
  void read_back() {
    constexpr Index kWide = kStripWidth;
    for (Index i = 0; i < c.rows; ++i) {
      for (Index j = 0; j < c.columns; ++j) {
        if (c.operation == Operation::kPack) {
          result.view().at(i, j) = packed_.data()[(j / kWide * c.rows + i) * kWide + j % kWide];
        } else if (c.operation == Operation::kPackTransposed) {
          result.view().at(i, j) = packed_.data()[(i / kWide * c.columns + j) * kWide + i % kWide];
        }
      }
    }
  }

  /// Adds the gradients of Σ d_result ⊙ result. After forward().
  void backward() {
    const View<T> d_y = std::as_const(d_result).view();
    switch (c.operation) {
      case Operation::kMatmul: kernel::matmul_backward(in(0), in(1), d_y, out(0), out(1)); break;
      case Operation::kMatmulPlain: {  // y = x W is y = x Vᵀ with V = Wᵀ
        const Matrix<T> across = transposed(in(1));
        Matrix<T> d_across = Matrix<T>::zero(across.rows(), across.columns());
        kernel::matmul_backward(in(0), across.view(), d_y, out(0), d_across.view());
        const Matrix<T> added = transposed(std::as_const(d_across).view());
        kernel::add_to(added.view(), out(1));
        break;
      }
      case Operation::kActivation:
        kernel::activation_backward(c.activation, in(0), d_y, out(0));
        break;
      case Operation::kGated:
        kernel::gated_backward(c.activation, in(0), in(1), d_y, out(0), out(1));
        break;
      case Operation::kNorm:
        kernel::norm_backward(c.norm, in(0), row(1), kEpsilon, d_y, out(0), out(1).row_span(0),
                              out(2).row_span(0));
        break;
      case Operation::kResidualNorm: {
        Matrix<T> sum = Matrix<T>::copy(in(0));
        kernel::add_to(in(3), sum.view());
        Matrix<T> d_sum = Matrix<T>::zero(c.rows, c.columns);
        kernel::norm_backward(c.norm, std::as_const(sum).view(), row(1), kEpsilon, d_y,
                              d_sum.view(), out(1).row_span(0), out(2).row_span(0));
        kernel::add_to(std::as_const(d_sum).view(), out(0));
        kernel::add_to(std::as_const(d_sum).view(), out(3));
        break;
      }
      case Operation::kSoftmax:
        kernel::softmax_backward(std::as_const(result).view(), d_y, out(0));
        break;
      case Operation::kEmbedding:
        kernel::embedding_backward(std::span<const TokenId>(ids_), d_y, out(0));
        break;
      case Operation::kRotary: {
        Matrix<T> d_x = Matrix<T>::copy(d_y);
        kernel::rotary_backward<T>(c.layout, table(), c.head_size, d_x.view());
        kernel::add_to(std::as_const(d_x).view(), out(0));
        break;
      }
      case Operation::kDropout: {
        Matrix<T> d_x = Matrix<T>::copy(d_y);
        kernel::dropout_backward(0.3, RandomStream(5, "dropout"), 3, d_x.view());
        kernel::add_to(std::as_const(d_x).view(), out(0));
        break;
      }
      case Operation::kTrainedLinear:
        trained_.backward(d_y, true, out(0));
        kernel::add_weight_gradient(in(0), d_y, precision(), out(1), out(2).row_span(0));
        break;
      case Operation::kVocabularyLoss:
        kernel::vocabulary_loss<T>(task(weights_times(d_result.data()[0])), precision(),
                                   {out(0), out(1), out(2).row_span(0)});
        break;
      case Operation::kLinear:
      case Operation::kLogProbability:
      case Operation::kExpSum:
      case Operation::kPack:
      case Operation::kPackTransposed:
      case Operation::kAdamW:
      case Operation::kLamb: break;
    }
  }

  const KernelCase c;
  std::vector<Matrix<T>> inputs;
  Matrix<T> result;
  Matrix<T> d_result;
  std::vector<Matrix<T>> gradients;  ///< one for each of inputs

 private:
  static constexpr Index kTableRows = 50;
  static constexpr Index kStripWidth =
      kernel::kStripColumns<std::conditional_t<std::is_floating_point_v<T>, T, double>>;
  static constexpr double kEpsilon = 1e-5;

  static void fill(Matrix<T>& matrix, std::uint64_t item) {
    std::vector<double> values(matrix.span().size());
    RandomStream(1, "kernel case", item).normal(0, values.size(), values.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      matrix.span()[i] = static_cast<T>(static_cast<float>(values[i]));
    }
  }
  void add(Index rows, Index columns) {
    inputs.emplace_back(rows, columns);
    fill(inputs.back(), inputs.size());
  }
  static Index strip_count(Index columns) {
    return (columns + kStripWidth - 1) / kStripWidth * kStripWidth;
  }
  /// One step, of what the one before has left.
  void optimize() {
    const kernel::OptimizedTensor<T> tensor{result.span(), inputs[1].span(), first_moment_.span(),
                                            second_moment_.span()};
    kernel::OptimizerSettings settings;
    settings.weight_decay = 0.01;
    if (c.operation == Operation::kAdamW) {
      kernel::adamw_update(settings, tensor);
    } else {
      kernel::lamb_update(settings, tensor);
    }
  }
  void forward_only() {
    switch (c.operation) {
      case Operation::kExpSum:
        kernel::for_rows(c.rows, c.columns, [&](Index i) {
          const kernel::ExpSum sum = kernel::exp_sum(in(0).row(i), c.columns, 0.5);
          result.data()[i] = static_cast<T>(sum.largest + std::log(sum.sum));
        });
        break;
      case Operation::kPack: kernel::pack<T>(in(0), {packed_.data(), c.rows * kStripWidth}); break;
      case Operation::kPackTransposed:
        kernel::pack_transposed<T>(in(0), {packed_.data(), c.columns * kStripWidth});
        break;
      default: optimize();
    }
  }
  kernel::Precision precision() const {
    return std::is_same_v<T, float> ? c.precision : kernel::Precision::kF64;
  }
  kernel::Linear<T> make_linear() const {
    const View<T> weight = in(1);
    return {std::span(&weight, 1), row(2), precision(), c.activation};
  }
  kernel::VocabularyTask<T> task(std::span<const double> weights) const {
    return {in(0), in(1), row(2), ids_, weights};
  }
  std::span<const double> weights_times(T factor) {
    scaled_.clear();
    for (const double weight : row_weights_) {
      scaled_.push_back(weight * kernel::reference::real_part(factor));
    }
    return scaled_;
  }
  static Matrix<T> transposed(View<T> x) {
    Matrix<T> y(x.columns, x.rows);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.columns; ++j) y.view().at(j, i) = x.at(i, j);
    }
    return y;
  }
  View<T> in(std::size_t i) const { return inputs[i].view(); }
  std::span<const T> row(std::size_t i) const { return inputs[i].span(); }
  MatrixView<T> out(std::size_t i) { return gradients[i].view(); }
  /// The result, holding the first input.
  MatrixView<T> copied() {
    std::copy(inputs[0].span().begin(), inputs[0].span().end(), result.span().begin());
    return result.view();
  }
  kernel::RotaryTable<T> table() const {
    return kernel::rotary_table<T>(kernel::rotary_frequencies(10000, c.head_size - 2), positions_,
                                   1.25);
  }

  kernel::Linear<T> linear_;
  kernel::TrainedLinear<T> trained_;
  std::vector<double> row_weights_, scaled_;
  std::vector<TokenId> ids_;
  std::vector<Index> positions_;
  std::vector<std::uint64_t> bits_;
  Matrix<T> first_moment_, second_moment_, packed_;
};

}  // namespace masque::test
