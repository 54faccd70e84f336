// Ten steps against PyTorch's (scripts/goldens/train_steps.py).
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include <doctest/doctest.h>

#include "base/file.hpp"
#include "base/json.hpp"
#include "kernel/optimizer.hpp"
#include "model/load.hpp"
#include "model/save.hpp"
#include "train/network/network.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

const std::string kData = MASQUE_TEST_DATA;

std::vector<Example> examples_of(const JsonValue& root) {
  std::vector<Example> examples;
  const auto number = [](const JsonValue& v) { return static_cast<Index>(*v.number()); };
  for (std::size_t s = 0; s < root.find("ids")->items.size(); ++s) {
    Example e;
    for (const JsonValue& id : root.find("ids")->items[s].items)
      e.ids.push_back(static_cast<TokenId>(number(id)));
    for (const JsonValue& row : root.find("rows")->items[s].items) e.rows.push_back(number(row));
    for (const JsonValue& target : root.find("targets")->items[s].items)
      e.targets.push_back(static_cast<TokenId>(number(target)));
    examples.push_back(std::move(e));
  }
  return examples;
}

double at(const JsonValue& root, std::string_view name) { return *root.find(name)->number(); }

}  // namespace

TEST_CASE("ten steps of AdamW are those of PyTorch: losses, gradients, weights") {
  const auto parsed = read_json(read_text(kData + "/train/steps.json", 1 << 20));
  const auto& golden = std::get<JsonValue>(parsed);
  model::LoadedModel<double> loaded = model::load_model<double>(kData + "/model/bert");
  const model::ModelPlan plan = model::plan_of(loaded.design);
  Parameters<double> parameters;
  const ParameterMap slots =
      add_model(plan, model::head_like(plan, loaded.design.head), "", ParameterMap(), parameters);
  slots.for_each([&](model::Role role, bool bias, Index layer, Index part, Index p) {
    const auto& from = model::place_of(loaded.weights, role, bias, layer, part);
    std::copy_n(from.view.data, parameters[p].size(), parameters.value(p).data);
  });
  Network<double> network(loaded.design, slots, parameters, kernel::Precision::kF64);
  const std::vector<Example> examples = examples_of(golden);
  Matrix<double> first = Matrix<double>::zero(1, static_cast<Index>(parameters.values().size()));
  Matrix<double> second = Matrix<double>::zero(1, static_cast<Index>(parameters.values().size()));
  const auto part = [](std::span<double> of, const Parameter& p) {
    return of.subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.size()));
  };
  for (std::int64_t step = 1; step <= 10; ++step) {
    const JsonValue& expected = golden.find("steps")->items[static_cast<std::size_t>(step) - 1];
    parameters.clear_gradients();
    network.prepare();
    const LossReport report = network.train(examples, 1 / total_weight(examples), {});
    CHECK(report.mean() == doctest::Approx(at(expected, "loss")).epsilon(1e-9));
    const double norm = std::sqrt(kernel::sum_of_squares<double>(parameters.gradients()));
    CHECK(norm == doctest::Approx(at(expected, "norm")).epsilon(1e-8));
    for (Index i = 0; i < parameters.count(); ++i) {
      const JsonValue* own = golden.find("gradients")->find(parameters[i].name);
      if (step > 1 || own == nullptr) continue;
      CAPTURE(parameters[i].name);
      const std::span<const double> gradient = part(parameters.gradients(), parameters[i]);
      // A key's bias moves all scores of a row alike: its gradient is 0 but for rounding.
      CHECK(std::abs(std::sqrt(kernel::sum_of_squares<double>(gradient)) - *own->number()) <
            1e-9 * (1 + *own->number()));
    }
    kernel::OptimizerSettings settings;
    settings.step = step;
    settings.gradient_scale = std::min(1.0, 1 / (norm + 1e-6));
    for (Index i = 0; i < parameters.count(); ++i) {
      const Parameter& p = parameters[i];
      settings.weight_decay = p.decays ? 0.01 : 0;
      kernel::adamw_update<double>(settings,
                                   {part(parameters.values(), p), part(parameters.gradients(), p),
                                    part(first.span(), p), part(second.span(), p)});
    }
  }
  int compared = 0;
  for (Index i = 0; i < parameters.count(); ++i) {
    const JsonValue* end = golden.find("end")->find(parameters[i].name);
    if (end == nullptr || parameters[i].name.ends_with("key.bias")) continue;
    CAPTURE(parameters[i].name);
    ++compared;
    double sum = 0;
    for (const double x : part(parameters.values(), parameters[i])) sum += x;
    CHECK(sum == doctest::Approx(*end->items[0].number()).epsilon(1e-7));
    CHECK(kernel::sum_of_squares<double>(part(parameters.values(), parameters[i])) ==
          doctest::Approx(*end->items[1].number()).epsilon(1e-7));
  }
  CHECK(compared > 30);
}

}  // namespace masque::test
