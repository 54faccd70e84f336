// The loss of a language model's head: against whole logits, for any threads, and its corners.
#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "kernel/product/linear.hpp"
#include "kernel/softmax/log_probability.hpp"
#include "kernel/softmax/vocabulary_loss.hpp"
#include "kernel/softmax/vocabulary_loss_reference.hpp"
#include "support/near.hpp"
#include "support/random_matrix.hpp"

namespace masque::test {
namespace {

using kernel::Precision;

struct Problem {
  Problem(Index rows, Index vocabulary, Index hidden)
      : x(random_matrix(rows, hidden, 1)),
        weight(random_matrix(vocabulary, hidden, 2)),
        bias(random_matrix(1, vocabulary, 3)) {
    for (Index i = 0; i < rows; ++i) {
      targets.push_back(static_cast<TokenId>(i * 7919 % vocabulary));
      row_weights.push_back(i % 4 == 3 ? 0 : 1.0 / static_cast<double>(1 + i % 3));
    }
  }
  kernel::VocabularyTask<float> task() const {
    return {x.view(), weight.view(), bias.span(), targets, row_weights};
  }
  Matrix<float> x, weight, bias;
  std::vector<TokenId> targets;
  std::vector<double> row_weights;
};

struct Found {
  explicit Found(const Problem& p)
      : d_x(random_matrix(p.x.rows(), p.x.columns(), 4)),
        d_weight(random_matrix(p.weight.rows(), p.weight.columns(), 5)),
        d_bias(random_matrix(1, p.weight.rows(), 6)),
        losses(p.targets.size()) {}
  kernel::VocabularyGradients<float> gradients() {
    return {d_x.view(), d_weight.view(), d_bias.span()};
  }
  Matrix<float> d_x, d_weight, d_bias;
  std::vector<double> losses;
  kernel::VocabularyLoss<float> loss;
};

Found run(const Problem& p, Precision precision, int threads) {
  const Threads set(threads);
  Found found(p);
  found.loss = kernel::vocabulary_loss(p.task(), precision, found.gradients(), found.losses);
  return found;
}

std::vector<double> doubles(std::span<const float> x) { return {x.begin(), x.end()}; }

TEST_CASE("the head's loss is the cross-entropy of all logits at once") {
  // The last has more than one chunk of rows.
  for (const auto& sizes :
       std::vector<std::pair<Index, Index>>{{1, 1}, {70, 5}, {50, 1000}, {400, 40000}}) {
    const auto& rows = sizes.first;
    const auto& vocabulary = sizes.second;
    CAPTURE(vocabulary);
    const Index hidden = 12;
    const Problem p(rows, vocabulary, hidden);
    Found found = run(p, Precision::kF32, 2);
    Matrix<float> logits(rows, vocabulary);
    const MatrixView<const float> weight = p.weight.view();
    const kernel::Linear<float> head(std::span(&weight, 1), p.bias.span(), Precision::kF32);
    head.forward(p.x.view(), logits.view());
    // The definition, in double.
    Matrix<double> whole(rows, vocabulary);
    std::copy_n(logits.data(), logits.span().size(), whole.data());
    std::vector<double> losses;
    auto d_whole = Matrix<double>::zero(rows, vocabulary);
    double sum = 0;
    Index correct = 0;
    for (std::size_t r = 0; r < p.targets.size(); ++r) {
      const auto i = static_cast<Index>(r);
      const double* row = whole.view().row(i);
      const Index target = p.targets[r];
      losses.push_back(kernel::reference::cross_entropy_row(row, vocabulary, target));
      sum += p.row_weights[r] * losses[r];
      kernel::reference::cross_entropy_row_backward(row, vocabulary, target, p.row_weights[r],
                                                    d_whole.view().row(i));
      correct += std::max_element(row, row + vocabulary) - row == target;
    }
    CHECK(far_off(found.losses, losses, 2e-5, 1e-6) == "");
    CHECK(found.loss.sum == doctest::Approx(sum).epsilon(1e-6));
    CHECK(found.loss.correct == correct);
    Matrix<float> d_logits(rows, vocabulary);
    for (std::size_t i = 0; i < d_logits.span().size(); ++i) {
      d_logits.data()[i] = static_cast<float>(d_whole.data()[i]);
    }
    Found expected(p);
    const Matrix<float>& d = d_logits;
    // d_x += d W, in double: a sum over the vocabulary in float is as far off as what is tested.
    for (Index r = 0; r < rows; ++r) {
      std::vector<double> row(hidden);
      for (Index v = 0; v < vocabulary; ++v) {
        for (Index k = 0; k < hidden; ++k) {
          row[static_cast<std::size_t>(k)] +=
              d_whole.view().at(r, v) * static_cast<double>(weight.at(v, k));
        }
      }
      for (Index k = 0; k < hidden; ++k) {
        float& to = expected.d_x.view().at(r, k);
        to = static_cast<float>(static_cast<double>(to) + row[static_cast<std::size_t>(k)]);
      }
    }
    // d_weight += dᵀ x
    for (Index v = 0; v < vocabulary; ++v) {
      for (Index r = 0; r < rows; ++r) {
        const float g = d.view().at(r, v);
        expected.d_bias.data()[v] += g;
        for (Index k = 0; k < hidden; ++k) {
          expected.d_weight.view().at(v, k) += g * p.x.view().at(r, k);
        }
      }
    }
    CHECK(far_off(doubles(found.d_x.span()), doubles(expected.d_x.span()), 2e-5, 1e-5) == "");
    CHECK(far_off(doubles(found.d_weight.span()), doubles(expected.d_weight.span()), 2e-5, 1e-5) ==
          "");
    CHECK(far_off(doubles(found.d_bias.span()), doubles(expected.d_bias.span()), 2e-5, 1e-5) == "");
  }
}

TEST_CASE("the head's loss with a soft cap and without a token is its definition") {
  for (const Index vocabulary : {5, 1000}) {
    CAPTURE(vocabulary);
    Problem p(70, vocabulary, 12);
    std::ranges::replace(p.targets, 3, 1);
    kernel::VocabularyTask<float> task = p.task();
    task.cap = 1.5;
    task.excluded = 3;
    Found found(p);
    std::ranges::fill(found.d_x.span(), 0.0F);
    std::ranges::fill(found.d_weight.span(), 0.0F);
    std::ranges::fill(found.d_bias.span(), 0.0F);
    found.loss = kernel::vocabulary_loss(task, Precision::kF32, found.gradients(), found.losses);
    const auto in_double = [](const Matrix<float>& x) {
      Matrix<double> y(x.rows(), x.columns());
      std::ranges::copy(x.span(), y.data());
      return y;
    };
    const Matrix<double> x = in_double(p.x), weight = in_double(p.weight), bias = in_double(p.bias);
    kernel::VocabularyTask<double> exact{x.view(), weight.view(), bias.span(), p.targets,
                                         p.row_weights};
    exact.cap = 1.5;
    exact.excluded = 3;
    Matrix<double> d_x = Matrix<double>::zero(x.rows(), x.columns());
    Matrix<double> d_weight = Matrix<double>::zero(weight.rows(), weight.columns());
    Matrix<double> d_bias = Matrix<double>::zero(1, vocabulary);
    std::vector<double> losses(p.targets.size());
    const auto loss = kernel::reference::vocabulary_loss<double>(
        exact, {d_x.view(), d_weight.view(), d_bias.span()}, losses, {});
    CHECK(found.loss.sum == doctest::Approx(loss.sum).epsilon(1e-6));
    CHECK(found.loss.correct == loss.correct);
    const auto all = [](const Matrix<double>& m) {
      return std::vector<double>(m.span().begin(), m.span().end());
    };
    CHECK(far_off(found.losses, losses, 2e-5, 1e-6) == "");
    CHECK(far_off(doubles(found.d_x.span()), all(d_x), 2e-5, 1e-5) == "");
    CHECK(far_off(doubles(found.d_weight.span()), all(d_weight), 2e-5, 1e-5) == "");
    CHECK(far_off(doubles(found.d_bias.span()), all(d_bias), 2e-5, 1e-5) == "");
    CHECK(std::ranges::all_of(d_weight.view().row_span(3), [](double d) { return d == 0; }));
    // log_probability_forward has the same numbers.
    const MatrixView<const float> rows = p.weight.view();
    const kernel::Linear<float> head(std::span(&rows, 1), p.bias.span(), Precision::kF32);
    std::vector<double> log_p(p.targets.size());
    kernel::log_probability_forward<float>(p.x.view(), head, 1, p.targets, log_p, 3, 1.5);
    for (double& one : log_p) one = -one;
    CHECK(far_off(log_p, losses, 2e-5, 1e-6) == "");
  }
}

TEST_CASE("the head's loss: the same bits for any threads, each gradient alone, or none") {
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    const Problem p(130, 20000, 33);
    const Found one = run(p, precision, 1);
    for (const int threads : {2, 3}) {
      const Found more = run(p, precision, threads);
      CHECK(more.loss.sum == one.loss.sum);
      CHECK(more.loss.correct == one.loss.correct);
      CHECK(more.losses == one.losses);
      CHECK(same_bits(more.d_x, one.d_x));
      CHECK(same_bits(more.d_weight, one.d_weight));
      CHECK(same_bits(more.d_bias, one.d_bias));
    }
    CHECK(kernel::vocabulary_loss(p.task(), precision, {}).sum == one.loss.sum);
    Found part(p);
    kernel::vocabulary_loss(p.task(), precision, {part.d_x.view(), {}, {}});
    kernel::vocabulary_loss(p.task(), precision, {{}, part.d_weight.view(), {}});
    kernel::vocabulary_loss(p.task(), precision, {{}, {}, part.d_bias.span()});
    CHECK(same_bits(part.d_x, one.d_x));
    CHECK(same_bits(part.d_weight, one.d_weight));
    CHECK(same_bits(part.d_bias, one.d_bias));
    // A row's loss does not depend on the other rows.
    auto task = p.task();
    task.x = task.x.middle_rows(0, 7);
    task.targets = task.targets.first(7);
    task.row_weights = task.row_weights.first(7);
    std::vector<double> losses(7);
    kernel::vocabulary_loss(task, precision, {}, losses);
    CHECK(std::equal(losses.begin(), losses.end(), one.losses.begin()));
  }
}

TEST_CASE("the head's loss: NaN stays in its row, the first of equal logits counts") {
  Problem p(3, 300, 4);
  p.x.view().at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const Found found = run(p, Precision::kF32, 1);
  CHECK(std::isfinite(found.losses[0]));
  CHECK(std::isnan(found.losses[1]));
  CHECK(std::isfinite(found.losses[2]));
  CHECK(std::isnan(found.loss.sum));

  Problem same(2, 300, 4);
  std::fill_n(same.x.data(), 8, 0.0F);
  std::fill_n(same.bias.data(), 300, 1.0F);
  same.targets = {0, 299};
  CHECK(run(same, Precision::kF32, 1).loss.correct == 1);
  CHECK(run(same, Precision::kF32, 1).losses[1] == doctest::Approx(std::log(300.0)));

  Problem none(1, 5, 2);
  auto task = none.task();
  task.x = task.x.middle_rows(0, 0);
  task.targets = {};
  task.row_weights = {};
  CHECK(kernel::vocabulary_loss(task, Precision::kF32, {}).sum == 0);
}

TEST_CASE("draws are those of the softmax's running sum") {
  // One tile and many, with a chunk of rows that is not the only one.
  for (const auto& sizes : {std::pair<Index, Index>{300, 40}, {257, 1000}, {700, 30000}}) {
    const auto& rows = sizes.first;
    const auto& vocabulary = sizes.second;
    CAPTURE(vocabulary);
    const Problem p(rows, vocabulary, 8);
    std::vector<double> uniforms;
    for (Index i = 0; i < rows; ++i)
      uniforms.push_back(i == 0   ? 0
                         : i == 1 ? 1 - 0x1p-52
                                  : Draw(7, "u", static_cast<std::uint64_t>(i)).uniform());
    kernel::VocabularyTask<float> task = p.task();
    task.uniforms = uniforms;
    std::vector<TokenId> draws(uniforms.size()), with_gradients(uniforms.size());
    std::vector<double> draw_losses(uniforms.size()), losses(uniforms.size());
    kernel::vocabulary_loss(task, Precision::kF32, {}, {}, draws, draw_losses);
    kernel::VocabularyTask<float> drawn_targets = p.task();
    drawn_targets.targets = draws;
    kernel::vocabulary_loss(drawn_targets, Precision::kF32, {}, losses);
    for (std::size_t r = 0; r < losses.size(); ++r)
      CHECK(draw_losses[r] == doctest::Approx(losses[r]).epsilon(1e-5));
    Found found(p);
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      kernel::vocabulary_loss(task, Precision::kF32, found.gradients(), {}, with_gradients);
      CHECK(with_gradients == draws);
    }
    for (Index r = 0; r < rows; ++r) {
      std::vector<double> sums{0};
      for (Index v = 0; v < vocabulary; ++v) {
        double logit = static_cast<double>(p.bias.view().at(0, v));
        for (Index k = 0; k < 8; ++k)
          logit += static_cast<double>(p.x.view().at(r, k)) *
                   static_cast<double>(p.weight.view().at(v, k));
        sums.push_back(sums.back() + std::exp(logit));
      }
      const auto at = static_cast<std::size_t>(draws[static_cast<std::size_t>(r)]);
      const double wanted = uniforms[static_cast<std::size_t>(r)];
      CHECK(sums[at] / sums.back() <= wanted + 2e-6);
      CHECK(wanted <= sums[at + 1] / sums.back() + 2e-6);
    }
  }
  // Sure ones, in float and double.
  Matrix<float> x(1, 1), weight = Matrix<float>::zero(200, 1);
  x.view().at(0, 0) = 1;
  weight.view().at(150, 0) = 300;
  const std::vector<TokenId> target{0};
  const std::vector<double> one{1}, half{0.5};
  std::vector<TokenId> drawn(1);
  kernel::vocabulary_loss<float>({x.view(), weight.view(), {}, target, one, half}, Precision::kF32,
                                 {}, {}, drawn);
  CHECK(drawn[0] == 150);
  const Matrix<double> wide_x = Matrix<double>::zero(1, 1), flat = Matrix<double>::zero(4, 1);
  for (const auto& [u, token] : {std::pair(0.0, 0), {0.49, 1}, {0.5, 2}, {1 - 0x1p-52, 3}}) {
    const std::vector<double> uniform{u};
    kernel::vocabulary_loss<double>({wide_x.view(), flat.view(), {}, target, one, uniform},
                                    Precision::kF64, {}, {}, drawn);
    CHECK(drawn[0] == token);
  }
}

}  // namespace
}  // namespace masque::test
