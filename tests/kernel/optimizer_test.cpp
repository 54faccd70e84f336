// Steps of the optimizers: AdamW against torch, LAMB against numpy, and sums of squares.
#include "kernel/optimizer.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "support/near.hpp"
#include "support/random_matrix.hpp"
#include "support/table.hpp"

namespace masque::test {
namespace {

std::vector<double> numbers(const std::string& field) {
  std::vector<double> result;
  for (const std::string& word : split(field, ' ')) result.push_back(std::stod(word));
  return result;
}

template <class T>
struct Tensor {
  explicit Tensor(std::vector<T> start)
      : value(std::move(start)),
        gradient(value.size()),
        first(value.size()),
        second(value.size()) {}
  kernel::OptimizedTensor<T> spans() { return {value, gradient, first, second}; }
  std::vector<T> value, gradient, first, second;
};

template <class T, class Update>
void check_golden(const Row& row, const Update& update, double tolerance) {
  const std::vector<double> start = numbers(row[5]), gradients = numbers(row[6]);
  kernel::OptimizerSettings settings{std::stod(row[0]), std::stod(row[1]), std::stod(row[2]),
                                     std::stod(row[3]), std::stod(row[4])};
  settings.gradient_scale = 0.5;
  Tensor<T> tensor(std::vector<T>(start.begin(), start.end()));
  const std::size_t n = start.size();
  std::vector<double> found;
  for (std::size_t step = 0; step < gradients.size() / n; ++step) {
    for (std::size_t i = 0; i < n; ++i) {
      tensor.gradient[i] = static_cast<T>(2 * gradients[step * n + i]);
    }
    settings.step = static_cast<std::int64_t>(step) + 1;
    update(settings, tensor.spans());
    found.insert(found.end(), tensor.value.begin(), tensor.value.end());
  }
  CHECK(far_off(found, numbers(row[7]), tolerance, tolerance) == "");
}

TEST_CASE("AdamW makes the steps of torch") {
  for (const Row& row : read_table(MASQUE_TEST_DATA "/kernel/adamw.tsv", 8)) {
    check_golden<double>(row, kernel::adamw_update<double>, 1e-14);
    check_golden<float>(row, kernel::adamw_update<float>, 4e-7);
  }
}

TEST_CASE("LAMB makes the steps of algorithm 2 in numpy") {
  for (const Row& row : read_table(MASQUE_TEST_DATA "/kernel/lamb.tsv", 8)) {
    check_golden<double>(row, kernel::lamb_update<double>, 1e-14);
    // Values of up to 15 are rounded before small ones remain of them.
    check_golden<float>(row, kernel::lamb_update<float>, 1e-6);
  }
}

TEST_CASE("LAMB: the direction of Adam with decay, as long as the value") {
  kernel::OptimizerSettings settings;
  settings.learning_rate = 0.1;
  settings.weight_decay = 0.01;
  settings.epsilon = 1e-6;
  Tensor<double> tensor({3, -4, 0});
  double first[3] = {}, second[3] = {}, value[3] = {3, -4, 0};
  for (std::int64_t step = 1; step <= 3; ++step) {
    double direction[3], values = 0, directions = 0;
    for (int i = 0; i < 3; ++i) {
      const double g = std::cos(static_cast<double>(step) + i);
      tensor.gradient[static_cast<std::size_t>(i)] = g;
      first[i] = 0.9 * first[i] + 0.1 * g;
      second[i] = 0.999 * second[i] + 0.001 * g * g;
      const auto t = static_cast<double>(step);
      direction[i] = first[i] / (1 - std::pow(0.9, t)) /
                         (std::sqrt(second[i] / (1 - std::pow(0.999, t))) + 1e-6) +
                     0.01 * value[i];
      values += value[i] * value[i];
      directions += direction[i] * direction[i];
    }
    const double ratio = std::sqrt(values / directions);
    for (int i = 0; i < 3; ++i) value[i] -= 0.1 * ratio * direction[i];
    settings.step = step;
    CHECK(kernel::lamb_update(settings, tensor.spans()) == doctest::Approx(ratio).epsilon(1e-12));
    CHECK(far_off(tensor.value, std::vector<double>(value, value + 3), 1e-12, 1e-12) == "");
  }
  // A value of zeros has no length to keep.
  Tensor<double> zero({0, 0});
  zero.gradient = {1, 0};
  CHECK(kernel::lamb_update(settings, zero.spans()) == 1);
}

/// A value after two steps of each optimizer, with the sum of its squares at the end.
template <class T>
std::vector<double> after_steps(int threads) {
  const Threads set(threads);
  const Matrix<T> start = random_matrix<T>(1, 100003, 1);
  Tensor<T> tensor({start.span().begin(), start.span().end()});
  kernel::OptimizerSettings settings;
  settings.weight_decay = 0.01;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    const Matrix<T> gradient = random_matrix<T>(1, 100003, 1 + step);
    tensor.gradient.assign(gradient.span().begin(), gradient.span().end());
    settings.step = static_cast<std::int64_t>(step);
    if (step % 2 == 0) {
      kernel::adamw_update(settings, tensor.spans());
    } else {
      kernel::lamb_update(settings, tensor.spans());
    }
  }
  kernel::scale<T>(0.5, tensor.value);
  std::vector<double> all(tensor.value.begin(), tensor.value.end());
  all.push_back(kernel::sum_of_squares(std::span<const T>(tensor.value)));
  return all;
}

TEST_CASE("moments without gradients end at zero, not at subnormal numbers") {
  kernel::OptimizerSettings settings;
  Tensor<float> adamw(std::vector<float>(37, 1)), lamb = adamw;
  adamw.gradient.assign(37, 1e-3F), lamb.gradient.assign(37, 1e-3F);
  for (std::int64_t step = 1; step <= 2000; ++step) {
    settings.step = step;
    kernel::adamw_update(settings, adamw.spans());
    kernel::lamb_update(settings, lamb.spans());
    adamw.gradient.assign(37, 0), lamb.gradient.assign(37, 0);
  }
  CHECK(adamw.first == std::vector<float>(37, 0));
  CHECK(lamb.first == std::vector<float>(37, 0));
  CHECK(adamw.second[0] > 0);
}

TEST_CASE("optimizers: the same bits for any threads, float near double") {
  const std::vector<double> one = after_steps<float>(1), exact = after_steps<double>(1);
  CHECK(after_steps<float>(2) == one);
  CHECK(after_steps<float>(3) == one);
  CHECK(after_steps<double>(3) == exact);
  CHECK(far_off(one, exact, 1e-6, 1e-6) == "");
  double sum = 0;
  for (std::size_t i = 0; i + 1 < exact.size(); ++i) sum += exact[i] * exact[i];
  CHECK(exact.back() == doctest::Approx(sum).epsilon(1e-12));
}

}  // namespace
}  // namespace masque::test
