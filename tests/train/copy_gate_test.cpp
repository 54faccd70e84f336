// The gate of All-Tokens MLM: probabilities that sum to one, gradients against differences.
#include "train/network/copy_gate.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "model/checkpoint/save.hpp"
#include "train/network/network.hpp"
#include "train/network_cases.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

struct Gated {
  model::Design design = small_design();
  Parameters<double> parameters;
  ParameterMap map;
  CopyGateParameters gate;

  Gated() {
    const model::ModelPlan plan = model::saved_design(design).plan;
    map = add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    gate = add_copy_gate(design.hidden_size, "", parameters);
    initialize_parameters(design, map, {.seed = 3, .initializer_range = 0.4}, parameters);
    std::vector<double> numbers(static_cast<std::size_t>(design.hidden_size) + 1);
    RandomStream(4, "gate").normal(0, numbers.size(), numbers.data());
    std::copy_n(numbers.data(), design.hidden_size, parameters.value(gate.weight).data);
    parameters.value(gate.bias).at(0, 0) = numbers.back();
  }

  double loss(std::span<const Example> examples) {
    Network<double> network(design, map, parameters, kernel::Precision::kF64, gate);
    network.prepare();
    return network.evaluate(examples).loss;
  }
};

/// A sequence of which one row has a loss.
Example one_row(std::vector<TokenId> ids, Index row, TokenId target) {
  Example example;
  example.ids = std::move(ids);
  example.rows = {row};
  example.targets = {target};
  return example;
}

/// Every row a target: some the token that stands there, some another one.
std::vector<Example> examples_of() {
  Example example;
  example.ids = {2, 7, 4, 9, 3};
  example.rows = {0, 1, 2, 3, 4};
  example.targets = {2, 5, 4, 11, 3};
  example.weights = {1, 0.5, 2, 1, 1};
  return {example};
}

}  // namespace

TEST_CASE("probabilities of a gate and its vocabulary sum to one at every position") {
  Gated gated;
  for (const double shift : {-30.0, 0.0, 30.0}) {
    CAPTURE(shift);
    gated.parameters.value(gated.gate.bias).at(0, 0) = shift;
    for (Index row = 0; row < 5; ++row) {
      double sum = 0;
      Example example = one_row({2, 7, 4, 9, 3}, row, 0);
      for (TokenId token = 0; token < 13; ++token) {
        example.targets[0] = token;
        sum += std::exp(-gated.loss({&example, 1}));
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    }
  }
}

TEST_CASE("an open gate copies, a shut one is the vocabulary alone") {
  Gated gated;
  const Example same = one_row({2, 7, 3}, 1, 7);
  std::ranges::fill(gated.parameters.value(gated.gate.weight).row_span(0), 0.0);
  gated.parameters.value(gated.gate.bias).at(0, 0) = 800;
  CHECK(gated.loss({&same, 1}) == 0);
  gated.parameters.value(gated.gate.bias).at(0, 0) = -800;
  Network<double> plain(gated.design, gated.map, gated.parameters, kernel::Precision::kF64);
  plain.prepare();
  CHECK(gated.loss({&same, 1}) == doctest::Approx(plain.evaluate({&same, 1}).loss).epsilon(1e-14));
}

TEST_CASE("gradients through a gate are those of differences") {
  Gated gated;
  const std::vector<Example> examples = examples_of();
  Network<double> network(gated.design, gated.map, gated.parameters, kernel::Precision::kF64,
                          gated.gate);
  network.prepare();
  const LossReport report = network.train(examples, 1, {});
  CHECK(report.loss == doctest::Approx(gated.loss(examples)).epsilon(1e-13));
  for (Index i = 0; i < gated.parameters.count(); ++i) {
    CAPTURE(gated.parameters[i].name);
    const auto size = static_cast<std::size_t>(gated.parameters[i].size());
    const MatrixView<double> value = gated.parameters.value(i);
    const std::vector<double> before(value.data, value.data + size);
    std::vector<double> direction(size);
    RandomStream(9, gated.parameters[i].name).normal(0, size, direction.data());
    double expected = 0;
    for (std::size_t k = 0; k < size; ++k)
      expected += direction[k] * gated.parameters.gradient(i).data[k];
    constexpr double kStep = 1e-5;
    const auto moved = [&](double by) {
      for (std::size_t k = 0; k < size; ++k) value.data[k] = before[k] + by * direction[k];
      return gated.loss(examples);
    };
    const double found = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    std::copy(before.begin(), before.end(), value.data);
    CHECK(std::abs(found - expected) <= 1e-7 * std::max(1.0, std::abs(found)));
  }
}

}  // namespace masque::test
