// ELECTRA with a generator that is rewarded by the discriminator's loss.
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "complex_step.hpp"
#include "electra_case.hpp"
#include "support/message.hpp"
#include "train/run/trainer.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

/// What the generator did on items, found by its own means.
struct Play {
  std::vector<ElectraItem> selected;
  std::vector<std::vector<TokenId>> samples;
  std::vector<std::vector<double>> rewards;
  Index rows = 0;
};

Play play(Pair<double>& pair, std::span<const StepItem> items) {
  const ElectraSelection selection({.selection = {.rate = 0.3, .choice = records::Choice::kExact},
                                    .seed = 11,
                                    .tokens = small_tokens()});
  Network<double> generator(pair.model.generator, pair.model.generator_map, pair.parameters,
                            kernel::Precision::kF64);
  Network<double> second(pair.model.second, pair.model.second_map, pair.parameters,
                         kernel::Precision::kF64);
  generator.prepare();
  second.prepare();
  Play out;
  for (const StepItem& item : items) {
    const ElectraItem one = selection.select(item.item, item.epoch);
    Sampling sampling;
    sampling.uniforms = draw_numbers(item.item, item.epoch, one.rows, 11);
    const Example requested = generator_example(one);
    generator.evaluate({&requested, 1}, {.sampling = &sampling});
    std::vector<double>& rewards = out.rewards.emplace_back();
    const Example judged = discriminator_example(one, sampling.tokens, false);
    second.evaluate({&judged, 1}, {.losses = &rewards});
    out.rows += std::ssize(one.rows);
    out.samples.push_back(sampling.tokens);
    out.selected.push_back(one);
  }
  return out;
}

/// The surrogate loss of the play: rewards and baseline are constants in the first sum, the states
/// of the generator in the second.
Complex surrogate(const Pair<double>& pair, const Play& game, Parameters<Complex>& parameters) {
  Encoder<Complex> encoder(pair.model.generator, pair.model.generator_map, parameters,
                           kernel::Precision::kF64);
  Head<Complex> head(pair.model.generator, pair.model.generator_map, parameters,
                     kernel::Precision::kF64);
  encoder.prepare();
  head.prepare();
  Complex sum = 0;
  for (std::size_t s = 0; s < game.selected.size(); ++s) {
    const std::vector<double>& rewards = game.rewards[s];
    ExampleChunk chunk;
    chunk.add(
        drawn_example(game.selected[s], game.samples[s], std::vector<double>(rewards.size(), 1)));
    Tape<Complex> tape;
    Matrix<Complex> last(std::ssize(rewards), pair.model.generator.hidden_size);
    encoder.forward(chunk, {}, tape, last.view());
    std::vector<double> advantages;
    for (std::size_t k = 0; k < rewards.size(); ++k) {
      Complex z = 0;
      const MatrixView<Complex> w = parameters.value(pair.model.baseline);
      for (Index c = 0; c < w.columns; ++c)
        z += last.view().at(static_cast<Index>(k), c).real() * w.at(0, c);
      const double right = std::exp(-rewards[k]);
      advantages.push_back(rewards[k] - std::log1p(std::exp(-z.real())));
      sum += right * std::log(1.0 + std::exp(-z)) + (1 - right) * std::log(1.0 + std::exp(z));
    }
    sum += head.run({last.view(), chunk.targets, advantages}, {}).loss;
  }
  return sum / static_cast<double>(game.rows);
}

}  // namespace

TEST_CASE("adversarial: the generator's gradients are those of the surrogate loss") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus, 1);
  for (const char* variant : {"electra", "electra-15"}) {
    CAPTURE(variant);
    // Without a weight of the discriminator only the generator's loss is left.
    Pair<double> pair({.variant = variant, .weight = 0, .adversarial = true});
    RandomStream(3, "baseline").normal(0, 8, pair.parameters.value(pair.model.baseline).data);
    pair.loss->prepare();
    const Play game = play(pair, items);
    const StepLosses losses = pair.loss->add_gradients(items, {});
    check_gradients(
        pair.parameters, [&](Parameters<Complex>& moved) { return surrogate(pair, game, moved); },
        [](const Parameter&) { return true; });
    // What is reported.
    REQUIRE(losses.parts.size() == 4);
    CHECK(losses.parts[0].name == "generator");
    CHECK(losses.parts[0].factor == 0);
    CHECK(losses.parts[1].name == "reward");
    CHECK(losses.parts[2].name == "baseline_loss");
    double reward = 0;
    for (const auto& of : game.rewards) {
      for (const double r : of) reward += r;
    }
    CHECK(losses.parts[1].report.loss == doctest::Approx(reward).epsilon(1e-12));
    CHECK(losses.mean() == losses.parts[2].report.mean());
    CHECK(pair.loss->evaluate(items).parts[2].report.loss == losses.parts[2].report.loss);
  }
}

TEST_CASE("adversarial: chunks change nothing") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus);
  for (const char* variant : {"electra", "electra-15"}) {
    CAPTURE(variant);
    Pair<double> whole({.variant = variant, .weight = 3, .adversarial = true});
    Pair<double> parts({.variant = variant, .weight = 3, .adversarial = true, .chunk_rows = 30});
    std::vector<StepLosses> losses;
    for (Pair<double>* pair : {&whole, &parts}) {
      pair->loss->prepare();
      losses.push_back(pair->loss->add_gradients(items, {}));
    }
    for (std::size_t p = 0; p < 4; ++p) {
      CHECK(losses[0].parts[p].report.loss ==
            doctest::Approx(losses[1].parts[p].report.loss).epsilon(1e-12));
    }
    CHECK(losses[0].shares[0].count == losses[1].shares[0].count);
    for (std::size_t k = 0; k < whole.parameters.gradients().size(); ++k)
      CHECK(std::abs(whole.parameters.gradients()[k] - parts.parameters.gradients()[k]) < 1e-11);
  }
}

TEST_CASE("adversarial: the discriminator learns as it does with any generator") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus);
  Pair<double> with({.weight = 50, .adversarial = true});
  Pair<double> without({.weight = 0, .adversarial = true});
  Pair<double> joint({.weight = 50});
  Pair<double> alone({.weight = 0});
  for (Pair<double>* pair : {&with, &without, &joint, &alone}) {
    pair->loss->prepare();
    pair->loss->add_gradients(items, {});
  }
  for (Index i = 0; i < joint.parameters.count(); ++i) {
    const std::string& name = joint.parameters[i].name;
    CAPTURE(name);
    Index at = 0;
    while (with.parameters[at].name != name) ++at;
    const auto a = with.gradient(at), b = without.gradient(at);
    const auto c = joint.gradient(i), d = alone.gradient(i);
    for (std::size_t k = 0; k < a.size(); ++k)
      CHECK(std::abs((a[k] - b[k]) - (c[k] - d[k])) <= 1e-9 * std::max(1.0, std::abs(c[k])));
  }
}

TEST_CASE("adversarial: draws and updates repeat, and the generator is found out more and more") {
  const Corpus corpus = small_corpus();
  TrainerOptions options;
  options.schedule = {.learning_rate = 5e-3, .steps = 60};
  options.batch_size = 5;
  options.hidden_dropout = 0.1;
  const Setting setting{.weight = 1, .adversarial = true};
  Pair<float> pair(setting), again(setting);
  Trainer trainer(*pair.loss, pair.parameters, corpus, options);
  Trainer other(*again.loss, again.parameters, corpus, options);
  for (int i = 0; i < 6; ++i) {
    const StepLosses a = trainer.step().loss, b = other.step().loss;
    CHECK(a.mean() == b.mean());
    CHECK(a.shares[0].count == b.shares[0].count);
  }
  CHECK(std::ranges::equal(pair.parameters.values(), again.parameters.values()));

  // Against a discriminator whose own layers do not learn the reward rises.
  Pair<float> frozen({.weight = 0, .adversarial = true});
  options.hidden_dropout = 0;
  Trainer player(*frozen.loss, frozen.parameters, corpus, options);
  const double before = train::evaluate(*frozen.loss, corpus, 0).parts[1].report.mean();
  for (int i = 0; i < 60; ++i) player.step();
  CHECK(train::evaluate(*frozen.loss, corpus, 0).parts[1].report.mean() > before + 0.05);
}

TEST_CASE("adversarial: what cannot be is refused") {
  CHECK(contains(
      message_of<UsageError>([] { Pair<double>({.variant = "replace-mlm", .adversarial = true}); }),
      "adversarial needs a discriminator"));
  CHECK(contains(
      message_of<UsageError>([] { Pair<double>({.switch_step = 3, .adversarial = true}); }),
      "adversarial and switch"));
}

}  // namespace masque::test
