// Gradients of whole models against complex steps, and what they compute against the engine.
#include <complex>
#include <numeric>

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "model/save.hpp"
#include "model/transformer.hpp"
#include "train/family_cases.hpp"
#include "train/network/network.hpp"

namespace masque::test {

using namespace masque::train;
using Complex = std::complex<double>;

namespace {

struct Built {
  model::ModelPlan plan;
  Parameters<double> parameters;
  ParameterMap slots;
};

std::vector<NetworkCase> all_cases() {
  std::vector<NetworkCase> all = network_cases();
  for (NetworkCase& one : family_cases()) all.push_back(std::move(one));
  return all;
}

const model::HeadPlan* head_of(const model::ModelPlan& plan, const model::Design& design) {
  return plan.heads.empty() ? nullptr : model::head_like(plan, design.head);
}

Built build(const NetworkCase& one) {
  const model::Design& design = one.design;
  Built b;
  b.plan = one.plan ? *one.plan : model::plan_of(design);
  b.slots = add_model(b.plan, head_of(b.plan, design), "", ParameterMap(), b.parameters);
  initialize_parameters(design, b.slots, {.seed = 3, .initializer_range = 0.4}, b.parameters);
  // Biases and norms start where their gradients tell little.
  for (Index i = 0; i < b.parameters.count(); ++i) {
    const MatrixView<double> v = b.parameters.value(i);
    std::vector<double> noise(static_cast<std::size_t>(b.parameters[i].size()));
    RandomStream(5, b.parameters[i].name).normal(0, noise.size(), noise.data());
    for (std::size_t k = 0; k < noise.size(); ++k) v.data[k] += 0.1 * noise[k];
  }
  return b;
}

/// Σ weight · loss of examples, by complex numbers.
Complex complex_loss(const Built& built, const model::Design& design,
                     std::span<const Example> examples,
                     const std::function<double(Index, Index)>& step) {
  Parameters<Complex> parameters;
  const ParameterMap slots =
      add_model(built.plan, head_of(built.plan, design), "", ParameterMap(), parameters);
  auto& from = const_cast<Parameters<double>&>(built.parameters);
  for (Index i = 0; i < parameters.count(); ++i) {
    for (Index k = 0; k < parameters[i].size(); ++k)
      parameters.value(i).data[k] = {from.value(i).data[k], step(i, k)};
  }
  Encoder<Complex> encoder(design, slots, parameters, kernel::Precision::kF64);
  Head<Complex> head(design, slots, parameters, kernel::Precision::kF64);
  encoder.prepare();
  head.prepare();
  ExampleChunk chunk;
  for (const Example& e : examples) chunk.add(e);
  Tape<Complex> tape;
  Matrix<Complex> last(static_cast<Index>(chunk.wanted.size()), design.hidden_size);
  encoder.forward(chunk, {}, tape, last.view());
  return head.run({last.view(), chunk.targets, chunk.weights}, {}).loss;
}

}  // namespace

TEST_CASE("gradients of every variant and family are those of complex steps") {
  constexpr double kStep = 1e-40;
  for (const NetworkCase& one : all_cases()) {
    CAPTURE(one.name);
    const model::Design& design = one.design;
    Built built = build(one);
    const std::vector<Example> examples = small_examples(design);
    Network<double> network(design, built.slots, built.parameters, kernel::Precision::kF64);
    network.prepare();
    const LossReport report = network.train(examples, 1, {});
    const Complex plain = complex_loss(built, design, examples, [](Index, Index) { return 0.0; });
    CHECK(report.loss == doctest::Approx(plain.real()).epsilon(1e-12));
    double largest = 0;
    for (Index i = 0; i < built.parameters.count(); ++i) {
      const MatrixView<double> own = built.parameters.gradient(i);
      for (const double g : std::span(own.data, static_cast<std::size_t>(own.rows * own.columns)))
        largest = std::max(largest, std::abs(g));
    }
    // One random direction a tensor.
    for (Index i = 0; i < built.parameters.count(); ++i) {
      CAPTURE(built.parameters[i].name);
      if (!built.parameters[i].trained) continue;
      std::vector<double> direction(static_cast<std::size_t>(built.parameters[i].size()));
      RandomStream(9, built.parameters[i].name).normal(0, direction.size(), direction.data());
      double expected = 0;
      for (std::size_t k = 0; k < direction.size(); ++k)
        expected += direction[k] * built.parameters.gradient(i).data[k];
      const Complex moved = complex_loss(built, design, examples, [&](Index p, Index k) {
        return p == i ? kStep * direction[static_cast<std::size_t>(k)] : 0.0;
      });
      const double found = moved.imag() / kStep;
      CHECK(std::abs(found - expected) <= 1e-9 * std::max(1.0, std::max(largest, std::abs(found))));
    }
  }
}

TEST_CASE("what is trained computes what the engine computes") {
  for (const NetworkCase& one : all_cases()) {
    CAPTURE(one.name);
    const model::Design& design = one.design;
    if (design.head.kind == model::HeadKind::kDiscriminator) continue;
    Built built = build(one);
    const std::vector<Example> examples = small_examples(design);
    Network<double> network(design, built.slots, built.parameters, kernel::Precision::kF64);
    network.prepare();
    const LossReport report = network.evaluate(examples);
    model::LoadedModel<double> loaded;
    loaded.design = design;
    loaded.weights = weights_of(design, built.slots, built.parameters);
    const model::Transformer<double> engine(
        model::prepare(std::move(loaded), kernel::Precision::kF64),
        {.precision = kernel::Precision::kF64});
    model::Batch batch;
    model::Request request;
    std::vector<double> weights;
    for (const Example& e : examples) {
      // Given, since RoBERTa's begin after padding, of which one of the tokens is.
      std::vector<Index> positions(e.ids.size());
      std::iota(positions.begin(), positions.end(), Index{0});
      const Index first = batch.add(e.ids, {positions, e.segments, e.mask, e.query_mask});
      for (const Index row : e.rows) request.rows.push_back(first + row);
      request.targets.insert(request.targets.end(), e.targets.begin(), e.targets.end());
      for (std::size_t k = 0; k < e.rows.size(); ++k)
        weights.push_back(e.weights.empty() ? 1 : e.weights[k]);
    }
    const std::vector<double> found = engine.run(batch, request, nullptr);
    double loss = 0;
    for (std::size_t k = 0; k < found.size(); ++k) loss -= weights[k] * found[k];
    CHECK(report.loss == doctest::Approx(loss).epsilon(1e-11));
  }
}

}  // namespace masque::test
