// Gradients of whole models against complex steps, and what they compute against inference.
#include <complex>
#include <numeric>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "model/checkpoint/save.hpp"
#include "model/checkpoint/starting_model.hpp"
#include "model/transformer.hpp"
#include "model/variants.hpp"
#include "support/model_cases.hpp"
#include "train/family_cases.hpp"
#include "train/network/network.hpp"
#include "train/network/recipe.hpp"

namespace masque::test {

using namespace masque::train;
using Complex = std::complex<double>;

namespace {

struct Built {
  model::ModelPlan plan;
  Parameters<double> parameters;
  ParameterMap map;
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
  b.plan = one.plan ? *one.plan : model::saved_design(design).plan;
  b.map = add_model(b.plan, head_of(b.plan, design), "", ParameterMap(), b.parameters);
  initialize_parameters(design, b.map, {.seed = 3, .initializer_range = 0.4}, b.parameters);
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
                     const std::function<double(Index, Index)>& step, DropoutOptions drawn = {}) {
  Parameters<Complex> parameters;
  const ParameterMap map =
      add_model(built.plan, head_of(built.plan, design), "", ParameterMap(), parameters);
  auto& from = const_cast<Parameters<double>&>(built.parameters);
  for (Index i = 0; i < parameters.count(); ++i) {
    for (Index k = 0; k < parameters[i].size(); ++k)
      parameters.value(i).data[k] = {from.value(i).data[k], step(i, k)};
  }
  Encoder<Complex> encoder(design, map, parameters, kernel::Precision::kF64);
  Head<Complex> head(design, map, parameters, kernel::Precision::kF64);
  encoder.prepare();
  head.prepare();
  ExampleChunk chunk;
  for (const Example& e : examples) chunk.add(e);
  shift_wanted(design, chunk);
  Tape<Complex> tape;
  Matrix<Complex> last(static_cast<Index>(chunk.wanted.size()), last_width(design));
  drawn.draws_latents = true;  // as training does
  encoder.forward(chunk, drawn, tape, last.view());
  HeadTask<Complex> task{last.view(), chunk.targets, chunk.weights};
  task.offsets = chunk.offsets;
  return head.run(task, {}).loss;
}

}  // namespace

TEST_CASE("gradients of every variant and family are those of complex steps") {
  constexpr double kStep = 1e-40;
  for (const NetworkCase& one : all_cases()) {
    CAPTURE(one.name);
    const model::Design& design = one.design;
    Built built = build(one);
    const std::vector<Example> examples = small_examples(design);
    Network<double> network(design, built.map, built.parameters, kernel::Precision::kF64);
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

TEST_CASE("gradients with noise and dropout on the scores that layers hand on") {
  constexpr double kStep = 1e-40;
  int compared = 0;
  for (const NetworkCase& one : network_cases()) {
    if (one.design.variants.previous_scores == model::PreviousScores::kNone) continue;
    CAPTURE(one.name);
    Built built = build(one);
    const std::vector<Example> examples = small_examples(one.design);
    Network<double> network(one.design, built.map, built.parameters, kernel::Precision::kF64);
    network.prepare();
    const double plain = network.evaluate(examples).loss;
    for (const auto& [noise, dropout] : {std::pair(0.7, 0.0), {0.0, 0.4}, {0.5, 0.3}}) {
      CAPTURE(noise);
      CAPTURE(dropout);
      DropoutOptions drawn;
      drawn.score_noise = noise;
      drawn.score_dropout = dropout;
      drawn.seed = 8;
      drawn.step = 3;
      built.parameters.clear_gradients();
      network.chunk_rows = 100;
      const LossReport report = network.train(examples, 1, drawn);
      CHECK(std::abs(report.loss - plain) > 1e-6);
      CHECK(network.evaluate(examples).loss == plain);
      std::vector<double> gradients(built.parameters.gradients().begin(),
                                    built.parameters.gradients().end());
      std::vector<double> direction(gradients.size());
      RandomStream(9, "direction").normal(0, direction.size(), direction.data());
      double expected = 0;
      for (Index i = 0; i < built.parameters.count(); ++i) {
        const Parameter& p = built.parameters[i];
        for (Index k = 0; p.trained && k < p.size(); ++k) {
          const auto at = static_cast<std::size_t>(p.gradient_offset + k);
          expected += direction[at] * gradients[at];
        }
      }
      const Complex moved = complex_loss(
          built, one.design, examples,
          [&](Index i, Index k) {
            const Parameter& p = built.parameters[i];
            return p.trained ? kStep * direction[static_cast<std::size_t>(p.gradient_offset + k)]
                             : 0.0;
          },
          drawn);
      CHECK(report.loss == doctest::Approx(moved.real()).epsilon(1e-12));
      CHECK(std::abs(moved.imag() / kStep - expected) <= 1e-9 * std::max(1.0, std::abs(expected)));
      // A sequence draws the same numbers in any chunk.
      built.parameters.clear_gradients();
      network.chunk_rows = 1;
      CHECK(network.train(examples, 1, drawn).loss == doctest::Approx(report.loss).epsilon(1e-12));
      for (std::size_t k = 0; k < gradients.size(); ++k)
        CHECK(std::abs(built.parameters.gradients()[k] - gradients[k]) < 1e-10);
      ++compared;
    }
  }
  CHECK(compared > 10);
}

TEST_CASE("layers that are computed once more for the backward pass give the same bits") {
  int compared = 0;
  int refused = 0;
  for (const NetworkCase& one : all_cases()) {
    CAPTURE(one.name);
    const std::vector<Example> examples = small_examples(one.design);
    const auto train = [&](Recompute recompute, double& loss) {
      Built built = build(one);
      Network<double> network(one.design, built.map, built.parameters, kernel::Precision::kF64);
      network.set_recompute(recompute);
      network.chunk_rows = 5;  // a chunk for each sequence
      network.prepare();
      DropoutOptions dropout;
      dropout.hidden_dropout = 0.2;
      loss = network.train(examples, 1, dropout).loss;
      const std::span<double> gradients = built.parameters.gradients();
      return std::vector<double>(gradients.begin(), gradients.end());
    };
    double kept = 0;
    double again = 0;
    const std::vector<double> expected = train(Recompute::kOff, kept);
    const bool shares_scores = model::joins_heads(one.design);
    if (shares_scores) {
      CHECK_THROWS_AS(train(Recompute::kOn, again), UsageError);
      ++refused;
      continue;
    }
    const std::vector<double> found = train(Recompute::kOn, again);
    CHECK(kept == again);
    CHECK(expected == found);
    ++compared;
  }
  CHECK(compared > 80);
  CHECK(refused > 0);
}

TEST_CASE("a gradient that the backward pass has left behind gets no more") {
  int early = 0, all = 0;
  for (const NetworkCase& one : all_cases()) {
    CAPTURE(one.name);
    Built built = build(one);
    const std::vector<Example> examples = small_examples(one.design);
    Network<double> network(one.design, built.map, built.parameters, kernel::Precision::kF64);
    network.chunk_rows = 5;  // a chunk for each sequence
    network.prepare();
    const std::vector<Index> last = network.last_layers();
    const auto count = static_cast<std::size_t>(built.parameters.count());
    REQUIRE(last.size() == count);
    std::vector<std::vector<double>> left(count);
    Index before = one.design.num_hidden_layers + 1;
    RunOutputs<double> outputs;
    outputs.passed = [&](Index layer) {
      CHECK(layer == before - 1);
      before = layer;
      for (std::size_t i = 0; i < count; ++i) {
        const MatrixView<double> d = built.parameters.gradient(static_cast<Index>(i));
        if (last[i] < layer || !left[i].empty()) continue;
        left[i].assign(d.data, d.data + d.rows * d.columns);
      }
    };
    network.train(examples, 1, {}, outputs);
    for (std::size_t i = 0; i < count; ++i) {
      CAPTURE(built.parameters[static_cast<Index>(i)].name);
      const MatrixView<double> d = built.parameters.gradient(static_cast<Index>(i));
      ++all;
      if (left[i].empty()) continue;
      ++early;
      CHECK(left[i] == std::vector<double>(d.data, d.data + d.rows * d.columns));
    }
  }
  CHECK(2 * early > all);
}

TEST_CASE("layers that are computed once more are not kept") {
  const NetworkCase one{"post", small_design(), {}};
  Built built = build(one);
  Encoder<double> encoder(one.design, built.map, built.parameters, kernel::Precision::kF64);
  const std::vector<Example> examples = small_examples(one.design);
  for (const auto& [recompute, kept] :
       {std::pair(Recompute::kOn, std::size_t{1}), std::pair(Recompute::kOff, std::size_t{2}),
        std::pair(Recompute::kAuto, std::size_t{2})}) {
    encoder.set_recompute(recompute);
    encoder.prepare();
    std::span<const Example> rest = examples;
    const ExampleChunk chunk = take_chunk(rest, 100);
    Tape<double> tape;
    Matrix<double> last(static_cast<Index>(chunk.wanted.size()), one.design.hidden_size);
    encoder.forward(chunk, {}, tape, last.view());
    CHECK(tape.content.layers.size() == kept);
  }
}

TEST_CASE("what is trained computes what inference computes") {
  for (const NetworkCase& one : all_cases()) {
    CAPTURE(one.name);
    const model::Design& design = one.design;
    if (model::has_one_number(design.head.kind)) continue;
    Built built = build(one);
    const std::vector<Example> examples = small_examples(design);
    Network<double> network(design, built.map, built.parameters, kernel::Precision::kF64);
    network.prepare();
    const LossReport report = network.evaluate(examples);
    model::LoadedModel<double> loaded;
    loaded.design = design;
    loaded.weights = weights_of(design, built.map, built.parameters);
    const model::Transformer<double> transformer(
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
    const std::vector<double> found = transformer.run(batch, request, nullptr);
    double loss = 0;
    for (std::size_t k = 0; k < found.size(); ++k) loss -= weights[k] * found[k];
    CHECK(report.loss == doctest::Approx(loss).epsilon(1e-11));
  }
}

TEST_CASE("rope with arguments is masque's own rotation, to the bit that of the scheme") {
  const std::string spelled = "rope(layout=half, base=500)";
  for (const model::Streams streams :
       {model::Streams::kOne, model::Streams::kTwo, model::Streams::kFixedKeys}) {
    for (const char* kind : {"transformer", "gated_attention"}) {
      if (streams == model::Streams::kTwo && kind != std::string("transformer")) continue;
      CAPTURE(kind);
      DesignRecipe recipe;
      recipe.vocab_size = 13;
      recipe.hidden_size = 8;
      recipe.num_attention_heads = 2;
      recipe.attention_key_size = 4;
      recipe.num_hidden_layers = 2;
      recipe.max_position_embeddings = 6;
      recipe.layer_kind = kind;
      recipe.position = spelled;
      recipe.position_shared = true;
      NetworkCase own{spelled, design_of(recipe), {}};
      CHECK(own.design.position == model::PositionType::kRotary);
      CHECK(own.design.variants.position.empty());
      CHECK(own.design.layers[1].rotary.layout == kernel::RotaryLayout::kHalf);
      own.design.streams = streams;
      if (streams == model::Streams::kFixedKeys) own.design.mask = model::DefaultMask::kOthers;
      own.design.mask_token_id = 4;
      own.design.head.kind = model::HeadKind::kMasked;
      NetworkCase scheme = own;
      scheme.design.position = model::PositionType::kNone;
      scheme.design.variants.position = spelled;
      for (model::LayerDesign& layer : scheme.design.layers) layer.rotary = {};
      std::vector<Built> built;
      std::vector<double> losses;
      for (const NetworkCase& one : {own, scheme}) {
        Built& b = built.emplace_back(build(one));
        Network<double> network(one.design, b.map, b.parameters, kernel::Precision::kF64);
        network.prepare();
        losses.push_back(network.train(small_examples(one.design), 1, {}).loss);
      }
      CHECK(losses[0] == losses[1]);
      REQUIRE(built[0].parameters.count() == built[1].parameters.count());
      for (Index i = 0; i < built[0].parameters.count(); ++i) {
        CAPTURE(built[0].parameters[i].name);
        const MatrixView<double> a = built[0].parameters.gradient(i);
        const MatrixView<double> b = built[1].parameters.gradient(i);
        CHECK(std::equal(a.data, a.data + a.rows * a.columns, b.data));
      }
    }
  }
}

TEST_CASE("which spellings of rope become masque's own rotation") {
  const auto position_of = [](const std::string& spelled) {
    DesignRecipe recipe;
    recipe.vocab_size = 13;
    recipe.hidden_size = 8;
    recipe.num_attention_heads = 1;
    recipe.max_position_embeddings = 6;
    recipe.position = spelled;
    model::Design design = design_of(recipe);
    design.head.kind = model::HeadKind::kMasked;
    // Whatever it became can be written.
    CHECK(model::same_design(model::saved_design(design).plan.design, design));
    return design;
  };
  const model::Design plain = position_of("rope");
  CHECK(plain.position == model::PositionType::kRotary);
  for (const char* same : {"rope()", "rope(base=10000)", "rope(layout=adjacent)"})
    CHECK(position_of(same) == plain);
  CHECK(position_of("rope(base=500)").position == model::PositionType::kRotary);
  CHECK(position_of("rope(layout=half)").position == model::PositionType::kRotary);
  position_of("rope(base=1234.567)");
  for (const char* scheme :
       {"rope_pi(factor=1)", "rope_ntk", "rope_yarn", "xpos", "rerope", "randomized(scheme=rope)"})
    CHECK(position_of(scheme).variants.position == scheme);
}

TEST_CASE("rope in place of the positions of a checkpoint") {
  const auto position_of = [](const std::string& family, const std::string& spelled) {
    for (const ModelCase& one : model_cases()) {
      if (one.name != family) continue;
      model::Design design = model::StartingModel(one.folder).design();
      change_design({.position = spelled, .position_shared = false, .normalizer = {}}, design);
      return design;
    }
    return model::Design();
  };
  const std::string half = "rope(layout=half)";
  CHECK(position_of("bert", "rope").position == model::PositionType::kRotary);
  CHECK(position_of("bert", half).position == model::PositionType::kRotary);
  // As a scheme it leaves Llama its tensors.
  CHECK(position_of("llama", "rope").position == model::PositionType::kRotary);
  CHECK(position_of("llama", half).variants.position == half);
  // What only nn's scheme has a place for.
  CHECK(position_of("mpnet", "rope").variants.position == "rope");
  CHECK(position_of("mpnet", half).variants.position == half);
}

}  // namespace masque::test
