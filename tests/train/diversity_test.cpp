// The diversity of attention: values, gradients, and as a reward in the loss.
#include "train/network/diversity.hpp"

#include <functional>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "complex_step.hpp"
#include "model/checkpoint/save.hpp"
#include "support/message.hpp"
#include "train/network/network.hpp"
#include "train/network_cases.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

Matrix<double> matrix_of(Index n, const std::function<double(Index, Index)>& value) {
  Matrix<double> out(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) out.view().at(i, j) = value(i, j);
  }
  return out;
}

Diversities measured(const Matrix<double>& a) {
  return measure_diversity<double>(a.view(), {}, {});
}

/// Loss less reward of examples, by complex numbers.
Complex rewarded_loss(const model::Design& design, const ParameterMap& map,
                      std::span<const Example> examples, const Diversities& rewards,
                      Parameters<Complex>& parameters) {
  Encoder<Complex> encoder(design, map, parameters, kernel::Precision::kF64);
  Head<Complex> head(design, map, parameters, kernel::Precision::kF64);
  encoder.measure_diversity();
  encoder.prepare();
  head.prepare();
  ExampleChunk chunk;
  for (const Example& e : examples) chunk.add(e);
  shift_wanted(design, chunk);
  Tape<Complex> tape;
  Matrix<Complex> last(std::ssize(chunk.wanted), last_width(design));
  DropoutOptions drawn;
  drawn.draws_latents = true;  // as training does
  encoder.forward(chunk, drawn, tape, last.view());
  HeadTask<Complex> task{last.view(), chunk.targets, chunk.weights};
  task.offsets = chunk.offsets;
  Complex loss = head.run(task, {}).loss;
  const auto count = static_cast<double>(encoder.attention_matrices() * std::ssize(examples));
  for (std::size_t k = 0; k < kDiversities; ++k) loss -= rewards[k] * tape.diversity[k] / count;
  return loss;
}

}  // namespace

TEST_CASE("diversity: the reference table") {
  constexpr Index n = 8;
  const auto check = [](const Matrix<double>& a, const std::array<double, 4>& expected) {
    const Diversities found = measured(a);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      CAPTURE(kDiversityNames[k]);
      CHECK(std::abs(found[k] - expected[k]) < 5e-5);
    }
    // Rows that sum to 1 are as they are.
    for (std::size_t k = 4; k < kDiversities; ++k) CHECK(found[k] == doctest::Approx(found[k - 4]));
  };
  check(matrix_of(n, [](Index, Index) { return 1.0 / n; }), {0, 0, 0, 0});
  check(matrix_of(n, [](Index i, Index j) { return i == j ? 1.0 : 0.0; }), {0.3307, 0, 0, 2.0794});
  check(matrix_of(n, [](Index, Index j) { return j == 0 ? 1.0 : 0.0; }), {0, 0, 0, 0});
  check(matrix_of(n, [](Index i, Index j) { return j == (i < n / 2 ? 0 : i) ? 1.0 : 0.0; }),
        {0.2279, 0.1844, 0, 1.3863});
  // Two sharp rows and two flat ones.
  check(matrix_of(4, [](Index i, Index j) { return i > 1    ? 0.25
                                                   : i == j ? 1.0
                                                            : 0.0; }),
        {0.25, 0.125, 0.2165, 0.5623});
}

TEST_CASE("diversity: rows are divided by their sums, empty ones left out") {
  const Matrix<double> a = matrix_of(4, [](Index i, Index j) { return 1.0 + double(i * j % 3); });
  Matrix<double> b = Matrix<double>::zero(5, 4);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 4; ++j)
      b.view().at(i < 2 ? i : i + 1, j) = a.view().at(i, j) * double(i + 2);
  }
  const Diversities of_a = measured(a);
  const Diversities of_b = measured(b);
  for (std::size_t k = 0; k < 4; ++k) CHECK(of_b[k] == doctest::Approx(of_a[k]));
  // By its formula, of the four rows that read something.
  std::vector<double> columns;
  for (Index j = 0; j < 4; ++j) {
    double sum = 0, squares = 0;
    for (Index i = 0; i < 5; ++i) sum += b.view().at(i, j);
    for (const Index i : {0, 1, 3, 4}) squares += std::pow(b.view().at(i, j) - sum / 4, 2);
    columns.push_back(std::sqrt(squares / 4));
  }
  const double mean = (columns[0] + columns[1] + columns[2] + columns[3]) / 4;
  double squares = 0;
  for (const double c : columns) squares += (c - mean) * (c - mean);
  CHECK(of_b[4] == doctest::Approx(mean));
  CHECK(of_b[5] == doctest::Approx(std::sqrt(squares / 4)));
  CHECK(of_b[6] > 1.2 * of_a[6]);
  CHECK(measured(Matrix<double>::zero(3, 3)) == Diversities{});
}

TEST_CASE("diversity: gradients by weights") {
  Matrix<double> a(5, 6);
  RandomStream(4, "weights").normal(0, 30, a.data());
  for (double& x : a.span()) x = std::abs(x);
  for (Index j = 0; j < 6; ++j) a.view().at(3, j) = 0;
  for (Index i = 0; i < 3; ++i) a.view().at(i, 5 - i) = 0;
  for (std::size_t k = 0; k < kDiversities; ++k) {
    CAPTURE(kDiversityNames[k]);
    Diversities slopes{};
    slopes[k] = 0.7;
    Matrix<double> gradient = Matrix<double>::zero(5, 6);
    measure_diversity<double>(a.view(), slopes, gradient.view());
    for (Index i = 0; i < 5; ++i) {
      for (Index j = 0; j < 6; ++j) {
        if (a.view().at(i, j) == 0) continue;  // what is not read stays so
        Matrix<Complex> moved(5, 6);
        std::ranges::copy(a.span(), moved.span().begin());
        moved.view().at(i, j) += Complex(0, 1e-40);
        const auto found = measure_diversity<Complex>(moved.view(), {}, {});
        CHECK(gradient.view().at(i, j) ==
              doctest::Approx(0.7 * found[k].imag() / 1e-40).epsilon(1e-10));
      }
    }
  }
}

TEST_CASE("diversity: its words") {
  CHECK(parse_diversity("d2:0.1,d3:-2") == Diversities{0, 0.1, -2, 0});
  CHECK(parse_diversity("mi:1") == Diversities{0, 0, 0, 1});
  CHECK(parse_diversity("raw_d2:1") == Diversities{0, 0, 0, 0, 0, 1, 0});
  CHECK(parse_diversity("d1:0") == Diversities{});
  for (const char* bad :
       {"", "d1", "d4:1", "d1:", "d1:x", "d1:1,", ",d1:1", "d1:inf", "d1=1", "mi:1,mi:2"}) {
    CAPTURE(bad);
    CHECK(contains(message_of<UsageError>([&] { parse_diversity(bad); }), "diversity: found"));
  }
}

TEST_CASE("diversity: gradients of rewarded losses are those of complex steps") {
  const Diversities rewards{0.8, 1.5, -0.6, 0.4, 0.3, -0.7, 0.9};
  std::set<std::string> seen;
  for (const NetworkCase& one : network_cases()) {
    CAPTURE(one.name);
    const model::Design& design = one.design;
    if (!seen.insert(one.name).second) continue;
    const model::ModelPlan plan = model::saved_design(design).plan;
    Parameters<double> parameters;
    const ParameterMap map =
        add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    initialize_parameters(design, map, {.seed = 3, .initializer_range = 0.4}, parameters);
    Network<double> network(design, map, parameters, kernel::Precision::kF64);
    if (design.variants.mixer != nullptr) {
      CHECK(contains(message_of<UsageError>([&] { network.reward_diversity(rewards); }),
                     "no attention"));
      continue;
    }
    network.reward_diversity(rewards);
    network.prepare();
    const std::vector<Example> examples = small_examples(design);
    const LossReport report = network.train(examples, 1, {});
    CHECK(report.sequences == std::ssize(examples));
    check_gradients(
        parameters,
        [&](Parameters<Complex>& moved) {
          return rewarded_loss(design, map, examples, rewards, moved);
        },
        [](const Parameter& p) { return p.trained; });
  }
}

TEST_CASE("diversity: a sequence counts by itself, in any chunk, and only with a loss") {
  const model::Design design = small_design();
  const model::ModelPlan plan = model::saved_design(design).plan;
  Parameters<double> parameters;
  const ParameterMap map =
      add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
  initialize_parameters(design, map, {.seed = 3, .initializer_range = 0.4}, parameters);
  Network<double> network(design, map, parameters, kernel::Precision::kF64);
  network.prepare();
  std::vector<Example> examples = small_examples(design);
  const double plain = network.evaluate(examples).loss;
  network.reward_diversity({1, 1, 1, 1, 1, 1, 1});
  examples.push_back(examples[0]);
  examples.back().rows.clear();
  examples.back().targets.clear();
  examples.back().weights.clear();
  const LossReport together = network.train(examples, 1, {});
  CHECK(together.loss == doctest::Approx(plain).epsilon(1e-12));
  CHECK(together.sequences == 2);
  const std::vector<double> gradients(parameters.gradients().begin(), parameters.gradients().end());
  parameters.clear_gradients();
  network.chunk_rows = 1;
  const LossReport apart = network.train(examples, 1, {});
  LossReport sum = network.evaluate({&examples[0], 1});
  sum.add(network.evaluate({&examples[1], 1}));
  for (std::size_t k = 0; k < kDiversities; ++k) {
    CHECK(together.diversity[k] > 0);
    CHECK(apart.diversity[k] == doctest::Approx(together.diversity[k]).epsilon(1e-12));
    CHECK(sum.diversity[k] == doctest::Approx(together.diversity[k]).epsilon(1e-12));
  }
  for (std::size_t k = 0; k < gradients.size(); ++k)
    CHECK(std::abs(parameters.gradients()[k] - gradients[k]) < 1e-12);
}

}  // namespace masque::test
