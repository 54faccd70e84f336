// Dense layers that pack once a step, and at each product.
#include "train/network/dense.hpp"

#include <doctest/doctest.h>

namespace masque::test {

using namespace masque::train;

TEST_CASE("weights that are packed at each product give the bits of those that are kept") {
  constexpr Index kRows = 37, kInputs = 50, kOutputs = 70;
  Parameters<float> parameters;
  const Index weight = parameters.add({.name = "w", .rows = kOutputs, .columns = kInputs});
  const Index bias = parameters.add({.name = "b", .rows = 1, .columns = kOutputs});
  parameters.fit();
  float next = 0.5F;
  const auto fill = [&](std::span<float> numbers) {
    for (float& x : numbers) x = next = 3.7F * next * (1 - next);
  };
  fill(parameters.values());
  ParameterMap map;
  map.set(model::Role::kUp, false, 0, 0, weight);
  map.set(model::Role::kUp, true, 0, 0, bias);
  Matrix<float> x(kRows, kInputs), d_y(kRows, kOutputs);
  fill(x.span());
  fill(d_y.span());

  for (const kernel::Precision precision : {kernel::Precision::kF32, kernel::Precision::kBf16}) {
    const auto run = [&](bool shared) {
      Dense<float> dense(parameters, map, {model::Role::kUp}, 0, precision);
      CHECK(dense.size() == kOutputs * kInputs);
      CHECK(dense.outputs() == kOutputs);
      const auto room = std::make_shared<kernel::TrainedLinear<float>>();
      if (shared) dense.share(room);
      dense.prepare();
      Matrix<float> y(kRows, kOutputs), d_x(kRows, kInputs);
      parameters.clear_gradients();
      dense.forward(x.view(), y.view());
      dense.backward(x.view(), d_y.view(), false, d_x.view());
      dense.backward(x.view(), d_y.view(), true, d_x.view());
      std::vector<float> all(y.span().begin(), y.span().end());
      all.insert(all.end(), d_x.span().begin(), d_x.span().end());
      const std::span<const float> gradients = parameters.gradients();
      all.insert(all.end(), gradients.begin(), gradients.end());
      return all;
    };
    const std::vector<float> kept = run(false);
    CHECK(kept[0] != kept[1]);
    CHECK(run(true) == kept);
  }
}

}  // namespace masque::test
