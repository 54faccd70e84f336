// Classifiers: gradients against complex steps, pooling, chunks.
#include "train/classifier.hpp"

#include <cmath>
#include <complex>

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "model/save.hpp"
#include "train/network_cases.hpp"

namespace masque::test {

using namespace masque::train;
using Complex = std::complex<double>;

namespace {

constexpr Index kLabels = 3;

struct Case {
  std::string name;
  model::Design design;
  Pooling pooling = Pooling::kFirst;
  double dropout = 0;
};

model::Design headless(model::Streams streams, model::DefaultMask mask) {
  model::Design design = small_design();
  design.head = {};
  design.type_vocab_size = 2;
  design.streams = streams;
  design.mask = mask;
  return design;
}

std::vector<Case> cases() {
  using model::DefaultMask;
  using model::Streams;
  return {{"BERT", headless(Streams::kOne, DefaultMask::kFull)},
          {"BERT, mean", headless(Streams::kOne, DefaultMask::kFull), Pooling::kMean},
          {"BERT, dropout", headless(Streams::kOne, DefaultMask::kFull), Pooling::kFirst, 0.3},
          {"mean, dropout", headless(Streams::kOne, DefaultMask::kFull), Pooling::kMean, 0.3},
          {"T-TA", headless(Streams::kFixedKeys, DefaultMask::kOthers)},
          {"T-TA without its diagonal", headless(Streams::kFixedKeys, DefaultMask::kFull)},
          {"causal, mean", headless(Streams::kOne, DefaultMask::kCausal), Pooling::kMean}};
}

Noise noise_of(const Case& one) {
  Noise noise;
  noise.hidden_dropout = one.dropout;
  noise.seed = 8;
  noise.step = 3;
  return noise;
}

std::vector<Example> examples_of(Pooling pooling) {
  std::vector<Example> out;
  const std::vector<std::vector<TokenId>> texts{{2, 7, 4, 9, 3}, {2, 12, 3}, {2, 5, 6, 3}};
  const std::vector<std::vector<Index>> segments{{0, 0, 0, 1, 1}, {0, 0, 0}, {0, 1, 1, 1}};
  for (std::size_t t = 0; t < texts.size(); ++t) {
    Example e;
    e.ids = texts[t];
    e.segments = segments[t];
    const Index rows = pooling == Pooling::kFirst ? 1 : e.size();
    for (Index i = 0; i < rows; ++i) e.rows.push_back(i);
    e.targets.assign(static_cast<std::size_t>(rows), static_cast<TokenId>(2 - t));
    out.push_back(std::move(e));
  }
  return out;
}

template <class T>
struct Built {
  Parameters<T> parameters;
  Slots model, classifier;

  explicit Built(const Case& one) {
    model = add_model(model::plan_of(one.design), nullptr, "", Slots(), parameters);
    classifier = add_classifier(one.design.hidden_size, kLabels, one.pooling, "", parameters);
  }
};

Built<double> filled(const Case& one) {
  Built<double> built(one);
  for (Index i = 0; i < built.parameters.count(); ++i) {
    std::vector<double> noise(static_cast<std::size_t>(built.parameters[i].size()));
    RandomStream(5, built.parameters[i].name).normal(0, noise.size(), noise.data());
    const bool norm = built.parameters[i].name.find("norm.weight") != std::string::npos;
    for (std::size_t k = 0; k < noise.size(); ++k)
      built.parameters.value(i).data[k] = (norm ? 1 : 0) + 0.3 * noise[k];
  }
  return built;
}

Complex complex_loss(Built<double>& from, const Case& one,
                     const std::function<double(Index, Index)>& step) {
  Built<Complex> built(one);
  for (Index i = 0; i < built.parameters.count(); ++i) {
    for (Index k = 0; k < built.parameters[i].size(); ++k)
      built.parameters.value(i).data[k] = {from.parameters.value(i).data[k], step(i, k)};
  }
  Encoder<Complex> encoder(one.design, built.model, built.parameters, kernel::Precision::kF64);
  ClassifierHead<Complex> head(built.classifier, built.parameters, kernel::Precision::kF64);
  encoder.prepare();
  head.prepare();
  Chunk chunk;
  std::vector<TokenId> labels;
  for (const Example& e : examples_of(one.pooling)) {
    chunk.add(e);
    labels.push_back(e.targets.front());
  }
  Tape<Complex> tape;
  const Noise noise = noise_of(one);
  Matrix<Complex> last(static_cast<Index>(chunk.wanted.size()), one.design.hidden_size);
  encoder.forward(chunk, noise, tape, last.view());
  Matrix<Complex> pooled(chunk.sequences(), one.design.hidden_size);
  pool_forward<Complex>(chunk, one.pooling, last.view(), pooled.view());
  const std::vector<double> weights(labels.size(), 1.0);
  ClassifierTask<Complex> task{pooled.view(), labels, weights};
  task.dropout = noise.hidden_dropout;
  task.stream = RandomStream(noise.seed, "dropout classifier", noise.step);
  return head.run(task, {}).loss;
}

}  // namespace

TEST_CASE("gradients of classifiers are those of complex steps") {
  constexpr double kStep = 1e-40;
  for (const Case& one : cases()) {
    CAPTURE(one.name);
    Built<double> built = filled(one);
    Classifier<double> classifier(one.design, built.model, built.classifier, one.pooling,
                                  built.parameters, kernel::Precision::kF64);
    classifier.prepare();
    const LossReport report = classifier.train(examples_of(one.pooling), 1, noise_of(one));
    CHECK(report.rows == 3);
    const Complex plain = complex_loss(built, one, [](Index, Index) { return 0.0; });
    CHECK(report.loss == doctest::Approx(plain.real()).epsilon(1e-12));
    double seen = 0;
    for (Index i = 0; i < built.parameters.count(); ++i) {
      CAPTURE(built.parameters[i].name);
      const auto size = static_cast<std::size_t>(built.parameters[i].size());
      std::vector<double> direction(size);
      RandomStream(9, built.parameters[i].name).normal(0, size, direction.data());
      double expected = 0;
      for (std::size_t k = 0; k < size; ++k)
        expected += direction[k] * built.parameters.gradient(i).data[k];
      const Complex moved = complex_loss(built, one, [&](Index p, Index k) {
        return p == i ? kStep * direction[static_cast<std::size_t>(k)] : 0.0;
      });
      const double found = moved.imag() / kStep;
      CHECK(std::abs(found - expected) <= 1e-9 * std::max(1.0, std::abs(found)));
      seen = std::max(seen, std::abs(found));
    }
    CHECK(seen > 0.01);
  }
}

TEST_CASE("probabilities and losses do not depend on chunks, and belong together") {
  const Case one = cases()[1];
  Built<double> built = filled(one);
  Classifier<double> classifier(one.design, built.model, built.classifier, one.pooling,
                                built.parameters, kernel::Precision::kF64);
  classifier.prepare();
  const std::vector<Example> examples = examples_of(one.pooling);
  std::vector<double> together;
  const LossReport whole = classifier.evaluate(examples, &together);
  classifier.chunk_rows = 1;
  std::vector<double> apart;
  CHECK(classifier.evaluate(examples, &apart).loss == doctest::Approx(whole.loss).epsilon(1e-13));
  REQUIRE(together.size() == 9);
  double loss = 0;
  Index correct = 0;
  for (std::size_t t = 0; t < 3; ++t) {
    CHECK(together[3 * t] + together[3 * t + 1] + together[3 * t + 2] == doctest::Approx(1));
    const std::size_t label = 2 - t;
    loss -= std::log(together[3 * t + label]);
    const auto row = together.begin() + static_cast<std::ptrdiff_t>(3 * t);
    if (std::max_element(row, row + 3) - row == static_cast<std::ptrdiff_t>(label)) ++correct;
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(apart[3 * t + k] == doctest::Approx(together[3 * t + k]).epsilon(1e-13));
  }
  CHECK(whole.loss == doctest::Approx(loss).epsilon(1e-13));
  CHECK(whole.correct == correct);
}

}  // namespace masque::test
