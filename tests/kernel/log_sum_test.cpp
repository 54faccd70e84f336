// Log-probabilities of large logits. Peer: torch.log_softmax (torch 2.15) of 300 float32 logits of
// 3e38 is -5.703782558441162 for each: -log 300 in float32.
#include "kernel/softmax/log_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "kernel/product/linear.hpp"
#include "kernel/softmax/log_probability.hpp"
#include "kernel/softmax/vocabulary_loss.hpp"
#include "kernel/softmax/vocabulary_loss_reference.hpp"
#include "support/random_matrix.hpp"

namespace masque::test {
namespace {

constexpr Index kWords = 300;
const double kEqualShare = -std::log(300.0);

TEST_CASE("of large logits the sum keeps what they differ by") {
  for (const double large : {0.0, 1e4, 1e8, 1e16, 3e38, -3e38}) {
    CAPTURE(large);
    const std::vector<double> equal(kWords, large);
    CHECK(equal[0] - kernel::log_sum(equal) == doctest::Approx(kEqualShare).epsilon(1e-15));
  }
  const std::vector<double> some{1e8, 1e8 + 1, -std::numeric_limits<double>::infinity()};
  const kernel::LogSum sum = kernel::log_sum(some);
  CHECK(some[0] - sum == doctest::Approx(-std::log(1 + std::exp(1.0))).epsilon(1e-15));
  CHECK(some[2] - sum == -std::numeric_limits<double>::infinity());
}

TEST_CASE("biases of 3e38 give every token its share in every kernel") {
  for (const float large : {0.0F, 1e8F, 3e38F, -3e38F}) {
    CAPTURE(large);
    const Matrix<float> x = random_matrix(2, 4, 1);
    Matrix<float> weight(kWords, 4);
    std::fill_n(weight.data(), kWords * 4, 0.0F);
    const std::vector<float> bias(kWords, large);
    const std::vector<TokenId> targets{7, 299};
    std::vector<double> found(2);
    const MatrixView<const float> rows = weight.view();
    const kernel::Linear<float> head({&rows, 1}, bias, kernel::Precision::kF32);
    kernel::log_probability_forward<float>(x.view(), head, 1, targets, found);
    for (const double value : found) CHECK(value == doctest::Approx(kEqualShare).epsilon(1e-6));

    const std::vector<double> weights{1, 1};
    kernel::VocabularyTask<float> task{x.view(), weight.view(), bias, targets, weights};
    std::vector<double> losses(2);
    kernel::vocabulary_loss<float>(task, kernel::Precision::kF32, {}, losses);
    for (const double loss : losses) CHECK(loss == doctest::Approx(-kEqualShare).epsilon(1e-6));

    const std::vector<double> logits(kWords, double{large});
    CHECK(kernel::reference::cross_entropy_row(logits.data(), kWords, 7) ==
          doctest::Approx(-kEqualShare).epsilon(1e-15));
  }
}

}  // namespace
}  // namespace masque::test
