// Two towers: what each row may know, and gradients.
#include "nn/two_tower.hpp"

#include <doctest/doctest.h>

#include "nn/example.hpp"

namespace masque::test {
namespace {

/// Two layers of attention with residuals under a mask, on x (T, 4).
Matrix<double> tower(const Matrix<double>& x, const char* mask) {
  const mask::BlockMap blocks(mask::parse_mask(mask).bind({x.rows(), x.rows()}));
  Matrix<double> state = Matrix<double>::copy(x.view());
  for (int layer = 0; layer < 2; ++layer) {
    Example<double> example({x.rows(), x.rows(), 1, 1, 4, 4});
    example.query = Matrix<double>::copy(state.view());
    example.key = Matrix<double>::copy(state.view());
    example.value = Matrix<double>::copy(state.view());
    const Matrix<double> context = define(example.problem(normalizer("softmax"), &blocks));
    for (Index i = 0; i < 4 * x.rows(); ++i) state.data()[i] += context.data()[i];
  }
  return state;
}

Matrix<double> joined(const Matrix<double>& x) {
  const Matrix<double> forward = tower(x, "causal");
  const Matrix<double> backward = tower(x, "reverse");
  Matrix<double> out(x.rows(), 8);
  nn::join_towers<double>(forward.view(), backward.view(), out.view());
  return out;
}

TEST_CASE("a row knows every token but its own, to the bit") {
  for (const Index n : {1, 2, 9}) {
    CAPTURE(n);
    Matrix<double> x = random_matrix<double>(n, 4, 1);
    const Matrix<double> before = joined(x);
    for (Index changed = 0; changed < n; ++changed) {
      CAPTURE(changed);
      x.view().at(changed, 2) += 0.5;
      const Matrix<double> after = joined(x);
      for (Index i = 0; i < n; ++i) {
        bool same = true;
        for (Index e = 0; e < 8; ++e) {
          same = same && before.view().at(i, e) == after.view().at(i, e);
        }
        CHECK(same == (i == changed));
      }
      x.view().at(changed, 2) -= 0.5;
    }
  }
}

TEST_CASE("rows move by one, borders are 0") {
  const Matrix<float> forward = random_matrix<float>(5, 2, 2);
  const Matrix<float> backward = random_matrix<float>(5, 3, 3);
  Matrix<float> out(5, 5);
  nn::join_towers<float>(forward.view(), backward.view(), out.view());
  for (Index i = 0; i < 5; ++i) {
    for (Index e = 0; e < 5; ++e) {
      const Index from = e < 2 ? i - 1 : i + 1;
      const float expected = from < 0 || from >= 5 ? 0
                             : e < 2               ? forward.view().at(from, e)
                                                   : backward.view().at(from, e - 2);
      CHECK(out.view().at(i, e) == expected);
    }
  }
}

TEST_CASE("the gradient is the transpose, and is added") {
  for (const Index n : {1, 2, 5}) {
    const Matrix<double> forward = random_matrix<double>(n, 2, 2);
    const Matrix<double> backward = random_matrix<double>(n, 3, 3);
    const Matrix<double> d_out = random_matrix<double>(n, 5, 4);
    Matrix<double> out(n, 5);
    nn::join_towers<double>(forward.view(), backward.view(), out.view());
    Matrix<double> d_forward = Matrix<double>::zero(n, 2);
    Matrix<double> d_backward = Matrix<double>::zero(n, 3);
    d_forward.view().at(0, 0) = 1;
    nn::join_towers_backward<double>(d_out.view(), d_forward.view(), d_backward.view());
    d_forward.view().at(0, 0) -= 1;
    double outer = 0;
    double inner = 0;
    for (Index i = 0; i < n * 5; ++i) outer += out.data()[i] * d_out.data()[i];
    for (Index i = 0; i < n * 2; ++i) inner += forward.data()[i] * d_forward.data()[i];
    for (Index i = 0; i < n * 3; ++i) inner += backward.data()[i] * d_backward.data()[i];
    CHECK(std::abs(outer - inner) < 1e-14);
    CHECK((n == 1 || inner != 0));
  }
}

}  // namespace
}  // namespace masque::test
