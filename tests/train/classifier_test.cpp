// Classifiers: gradients against complex steps and PyTorch's (scripts/goldens/classifier.py),
// chunks.
#include "train/classify/classifier.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/random/random.hpp"
#include "model/checkpoint/save.hpp"
#include "model/role.hpp"
#include "train/network_cases.hpp"

namespace masque::test {

using namespace masque::train;
using Complex = std::complex<double>;

namespace {

constexpr Index kLabels = 3;

struct Case {
  std::string name;
  model::Design design;
  ClassifierPooling pooling = ClassifierPooling::kFirst;
  double dropout = 0;
  ProblemType problem = ProblemType::kSingleLabel;

  Index outputs() const { return problem == ProblemType::kRegression ? 1 : kLabels; }
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
  return {
      {"BERT", headless(Streams::kOne, DefaultMask::kFull)},
      {"BERT, mean", headless(Streams::kOne, DefaultMask::kFull), ClassifierPooling::kMean},
      {"BERT, dropout", headless(Streams::kOne, DefaultMask::kFull), ClassifierPooling::kFirst,
       0.3},
      {"mean, dropout", headless(Streams::kOne, DefaultMask::kFull), ClassifierPooling::kMean, 0.3},
      {"T-TA", headless(Streams::kFixedKeys, DefaultMask::kOthers)},
      {"T-TA without its diagonal", headless(Streams::kFixedKeys, DefaultMask::kFull)},
      {"causal, mean", headless(Streams::kOne, DefaultMask::kCausal), ClassifierPooling::kMean},
      {"regression", headless(Streams::kOne, DefaultMask::kFull), ClassifierPooling::kFirst, 0.3,
       ProblemType::kRegression},
      {"regression, mean", headless(Streams::kFixedKeys, DefaultMask::kOthers),
       ClassifierPooling::kMean, 0, ProblemType::kRegression}};
}

DropoutOptions noise_of(const Case& one) {
  DropoutOptions noise;
  noise.hidden_dropout = one.dropout;
  noise.seed = 8;
  noise.step = 3;
  return noise;
}

std::vector<Example> examples_of(ClassifierPooling pooling,
                                 ProblemType problem = ProblemType::kSingleLabel) {
  std::vector<Example> out;
  const std::vector<std::vector<TokenId>> texts{{2, 7, 4, 9, 3}, {2, 12, 3}, {2, 5, 6, 3}};
  const std::vector<std::vector<Index>> segments{{0, 0, 0, 1, 1}, {0, 0, 0}, {0, 1, 1, 1}};
  for (std::size_t t = 0; t < texts.size(); ++t) {
    Example e;
    e.ids = texts[t];
    e.segments = segments[t];
    const Index rows = pooling == ClassifierPooling::kFirst ? 1 : e.size();
    for (Index i = 0; i < rows; ++i) e.rows.push_back(i);
    const auto count = static_cast<std::size_t>(rows);
    const bool regression = problem == ProblemType::kRegression;
    e.targets.assign(count, regression ? 0 : static_cast<TokenId>(2 - t));
    if (regression) e.offsets.assign(count, 0.9 * static_cast<double>(t) - 1.1);
    out.push_back(std::move(e));
  }
  return out;
}

template <class T>
struct Built {
  Parameters<T> parameters;
  ParameterMap model, classifier;

  explicit Built(const Case& one) {
    model =
        add_model(model::saved_design(one.design).plan, nullptr, "", ParameterMap(), parameters);
    classifier = add_classifier(one.design.hidden_size, one.outputs(), one.pooling, "", parameters);
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
  ExampleChunk chunk;
  std::vector<TokenId> labels;
  std::vector<double> offsets;
  for (const Example& e : examples_of(one.pooling, one.problem)) {
    chunk.add(e);
    labels.push_back(e.targets.front());
    if (!e.offsets.empty()) offsets.push_back(e.offsets.front());
  }
  Tape<Complex> tape;
  const DropoutOptions noise = noise_of(one);
  Matrix<Complex> last(static_cast<Index>(chunk.wanted.size()), one.design.hidden_size);
  encoder.forward(chunk, noise, tape, last.view());
  Matrix<Complex> pooled(chunk.sequences(), one.design.hidden_size);
  pool_forward<Complex>(chunk, one.pooling, last.view(), pooled.view());
  const std::vector<double> weights(labels.size(), 1.0);
  ClassifierTask<Complex> task{pooled.view(), labels, weights, offsets};
  task.dropout = noise.hidden_dropout;
  task.stream = RandomStream(noise.seed, "dropout classifier", noise.step);
  return head.run(task, {}).loss;
}

/// sin(0.7 row + 0.3 column + shift) / 4.
void fill_with_sines(MatrixView<double> to, double shift) {
  for (Index i = 0; i < to.rows; ++i) {
    for (Index j = 0; j < to.columns; ++j)
      to.at(i, j) =
          std::sin(0.7 * static_cast<double>(i) + 0.3 * static_cast<double>(j) + shift) / 4;
  }
}

std::vector<double> numbers_of(const JsonValue& root, std::string_view name, std::size_t text) {
  std::vector<double> out;
  for (const JsonValue& item : root.find(name)->items[text].items) out.push_back(*item.number());
  return out;
}

}  // namespace

TEST_CASE("gradients of classifiers are those of complex steps") {
  constexpr double kStep = 1e-40;
  for (const Case& one : cases()) {
    CAPTURE(one.name);
    Built<double> built = filled(one);
    Classifier<double> classifier(one.design, built.model, built.classifier, one.pooling,
                                  built.parameters, kernel::Precision::kF64, one.problem);
    classifier.prepare();
    const LossReport report =
        classifier.train(examples_of(one.pooling, one.problem), 1, noise_of(one));
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

TEST_CASE("loss, probabilities and gradients are those of BertForSequenceClassification") {
  const std::string data = MASQUE_TEST_DATA;
  const std::string path = data + "/train/classifier.json";
  const JsonValue root = parse_json_file(read_text(path, 1 << 20), path);
  model::LoadedModel<double> loaded = model::load_model<double>(data + "/model/bert");
  model::Design design = loaded.design;
  design.head = {};
  Parameters<double> parameters;
  const ParameterMap model =
      add_model(model::saved_design(design).plan, nullptr, "", ParameterMap(), parameters);
  const ParameterMap map =
      add_classifier(design.hidden_size, kLabels, ClassifierPooling::kFirst, "bert.", parameters);
  model.for_each([&](model::Role role, bool bias, Index layer, Index part, Index at) {
    const auto from = weight_of(loaded.weights, role, bias, layer, part).span();
    std::copy(from.begin(), from.end(), parameters.value(at).data);
  });
  fill_with_sines(parameters.value(map.weight(model::Role::kHeadTransform)), 1);
  fill_with_sines(parameters.value(map.bias(model::Role::kHeadTransform)), 2);
  fill_with_sines(parameters.value(map.weight(model::Role::kDecoder)), 3);
  fill_with_sines(parameters.value(map.bias(model::Role::kDecoder)), 4);
  std::vector<Example> examples(2);
  for (std::size_t t = 0; t < 2; ++t) {
    for (const double id : numbers_of(root, "ids", t))
      examples[t].ids.push_back(static_cast<TokenId>(id));
    for (const double segment : numbers_of(root, "segments", t))
      examples[t].segments.push_back(static_cast<Index>(segment));
    examples[t].rows = {0};
    examples[t].targets = {static_cast<TokenId>(*root.find("labels")->items[t].number())};
  }
  Classifier<double> classifier(design, model, map, ClassifierPooling::kFirst, parameters,
                                kernel::Precision::kF64);
  classifier.prepare();
  CHECK(classifier.train(examples, 1, {}).loss ==
        doctest::Approx(*root.find("loss")->number()).epsilon(1e-6));
  std::vector<double> found;
  classifier.evaluate(examples, &found);
  for (std::size_t t = 0; t < 2; ++t) {
    const std::vector<double> expected = numbers_of(root, "probabilities", t);
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(found[3 * t + k] == doctest::Approx(expected[k]).epsilon(1e-6));
  }
  Index compared = 0;
  for (Index i = 0; i < parameters.count(); ++i) {
    const JsonValue* norm = root.find("gradients")->find(parameters[i].name);
    if (norm == nullptr) continue;
    CAPTURE(parameters[i].name);
    double sum = 0;
    for (Index k = 0; k < parameters[i].size(); ++k) {
      const double g = parameters.gradient(i).data[k];
      sum += g * g;
    }
    CHECK(std::sqrt(sum) == doctest::Approx(*norm->number()).epsilon(1e-5));
    ++compared;
  }
  CHECK(compared == std::ssize(root.find("gradients")->members));
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
