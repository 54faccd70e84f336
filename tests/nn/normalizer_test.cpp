// What each normalizer promises, how they are named, and which of them are the same.
#include "nn/normalizer.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/string/comma_list.hpp"
#include "nn/attention/attention_evaluation.hpp"
#include "nn/example.hpp"
#include "nn/position/position.hpp"

namespace masque::test {
namespace {

/// The weights of a row of scores without a mask.
std::vector<double> weights_of(const nn::AttentionNormalizer& normalizer,
                               std::vector<double> scores) {
  nn::RowMask mask(nullptr, static_cast<Index>(scores.size()));
  mask.read(0);
  nn::reference::normalize_row<double>(normalizer, mask, scores);
  return scores;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

std::vector<double> random_row(Index n, std::uint64_t seed) {
  const Matrix<double> x = random_matrix<double>(1, n, seed);
  return {x.data(), x.data() + n};
}

TEST_CASE("the list holds the normalizers of the field, each with all that it says of itself") {
  for (const char* name :
       {"softmax", "softmax_plus", "log_n", "ssmax", "gauss", "squared_relu", "squared_relu_fixed",
        "squared_relu_paper", "squared_relu_sum", "l2", "sigmoid", "exp", "kna", "qna", "cosa"}) {
    CAPTURE(name);
    CHECK(nn::find_normalizer(name) != nullptr);
  }
  std::set<std::string> listed;
  for (const nn::VariantInfo& info : nn::variants()) {
    if (info.kind != "normalizer") continue;
    CAPTURE(info.name);
    CHECK(listed.insert(info.name).second);
    CHECK(info.masks == "any");
    CHECK(!info.cost.empty());
    CHECK(!info.source.empty());
    const nn::AttentionNormalizer& found = normalizer(info.name);
    CHECK(info.parameters.empty() == found.parameters().empty());
  }
  CHECK(listed.size() == nn::normalizers().size());
}

TEST_CASE("structure and evaluations are listed, too") {
  std::set<std::string> names;
  for (const nn::VariantInfo& info : nn::variants()) {
    CHECK(!info.source.empty());
    names.insert(info.kind + " " + info.name);
    if (info.kind != "structure" || info.masks == "any") continue;
    CAPTURE(info.masks);
    for (std::size_t at = 0; at < info.masks.size();) {
      const std::size_t end = std::min(info.masks.find(", ", at), info.masks.size());
      const std::string mask = info.masks.substr(at, end - at);
      CHECK(std::any_of(mask::mask_kinds().begin(), mask::mask_kinds().end(),
                        [&](const mask::MaskKind* kind) { return kind->name == mask; }));
      at = end + 2;
    }
  }
  for (const char* name :
       {"structure talking_heads", "structure talking_heads_before", "structure key_size",
        "structure talking_heads_after", "structure realformer", "structure realformer_1",
        "structure gau", "structure tta", "structure disco", "structure two_streams",
        "evaluation dense", "evaluation block", "evaluation long"}) {
    CAPTURE(name);
    CHECK(names.contains(name));
  }
}

/// The name with all parameters.
std::string text_of(const nn::AttentionNormalizer& normalizer) {
  const std::string parameters = comma_list(
      normalizer.parameters(),
      [](const nn::NormalizerParameter& p) { return fmt::format("{}={}", p.name, p.value); });
  if (parameters.empty()) return std::string(normalizer.name());
  return fmt::format("{}({})", normalizer.name(), parameters);
}

TEST_CASE("a normalizer is read from its name and its parameters") {
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    const std::string text = text_of(*normalizer);
    CAPTURE(text);
    const auto again = nn::parse_normalizer(text);
    CHECK(text_of(*again) == text);
    CHECK(again->name() == normalizer->name());
    for (const Index n : {0, 1, 7, 512, 100000}) {
      CHECK(again->temperature(n) == normalizer->temperature(n));
      CHECK(again->constant(n) == normalizer->constant(n));
      CHECK(std::isfinite(normalizer->temperature(n)));
      CHECK(std::isfinite(normalizer->constant(n)));
    }
    CHECK(nn::parse_normalizer(normalizer->name()).get() == normalizer);
  }
}

TEST_CASE("parameters take the place of the defaults, and wrong ones are refused by name") {
  CHECK(text_of(*nn::parse_normalizer(" log_n ( clip=16 , base = 64.5 ) ")) ==
        "log_n(base=64.5, clip=16)");
  CHECK(nn::parse_normalizer("log_n(clip=16)")->temperature(3) ==
        doctest::Approx(std::log(16.0) / std::log(512.0)));
  CHECK(nn::parse_normalizer("ssmax(s=2, bias=1)")->temperature(10) ==
        doctest::Approx(2 * std::log(10.0) + 1));
  CHECK(nn::parse_normalizer("cosa(factor=3, length=0)")->temperature(10) ==
        doctest::Approx(3 * std::log(10.0)));
  CHECK(nn::parse_normalizer("cosa")->temperature(10) == doctest::Approx(4 * std::log(512.0)));
  CHECK(nn::parse_normalizer("squared_relu_fixed(n=64)")->constant(7) == 64);
  CHECK(nn::parse_normalizer("gauss(entropy=1,sigma=3)")->temperature(100) ==
        doctest::Approx(std::sqrt(2 * (std::log(100.0) - 1)) / 3));
  CHECK(nn::parse_normalizer("gauss(entropy=3, least=0.2)")->temperature(10) == 0.2);
  CHECK_THROWS_WITH_AS(
      nn::parse_normalizer("hardmax"),
      doctest::Contains("no normalizer 'hardmax', expected one of cosa, exp, gauss"), UsageError);
  CHECK_THROWS_WITH_AS(nn::parse_normalizer("log_n(bass=2)"),
                       "log_n has no parameter 'bass', only base, clip", UsageError);
  CHECK_THROWS_WITH_AS(nn::parse_normalizer("log_n(base=1)"),
                       "log_n: base is '1', expected a number from 1.01 to 1000000000", UsageError);
  CHECK_THROWS_WITH_AS(nn::parse_normalizer("softmax(x=1)"),
                       "softmax has no parameter 'x', nor any other", UsageError);
  for (const char* text : {"", "(", "log_n(", "log_n(base)", "log_n(base=)", "log_n(base=nan)",
                           "log_n(base=inf)", "log_n(base=2x)", "log_n(2)", "log_n(base=2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(nn::parse_normalizer(text), UsageError);
  }
}

TEST_CASE("weights by hand") {
  const std::vector<double> s = {1, -2, 0.5};
  const double e = std::exp(1.0);
  const double sum = e + std::exp(-2.0) + std::exp(0.5);
  const double squares = e * e + std::exp(-4.0) + e;
  const auto near = [&](const char* name, const std::vector<double>& expected) {
    CAPTURE(name);
    CHECK(largest_difference(weights_of(normalizer(name), s), expected) < 1e-15);
  };
  near("softmax", {e / sum, std::exp(-2.0) / sum, std::exp(0.5) / sum});
  near("l2", {e / std::sqrt(squares), std::exp(-2.0) / std::sqrt(squares),
              std::exp(0.5) / std::sqrt(squares)});
  near("exp", {e, std::exp(-2.0), std::exp(0.5)});
  near("sigmoid", {e / (1 + e), 1 / (1 + std::exp(2.0)), 1 / (1 + std::exp(-0.5))});
  near("squared_relu", {1.0 / 3, 0, 0.25 / 3});
  near("squared_relu_fixed", {1.0 / 512, 0, 0.25 / 512});
  near("squared_relu_paper", {1.0 / 9, 0, 0.25 / 9});
  near("squared_relu_sum", {0.8, 0, 0.2});
  CHECK(weights_of(normalizer("squared_relu_sum"), {-1, -2}) == std::vector<double>{0, 0});
}

TEST_CASE("sums of rows") {
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const Index n : {1, 2, 7, 600}) {
      const std::vector<double> a = weights_of(*normalizer, random_row(n, 4));
      const double sum = std::accumulate(a.begin(), a.end(), 0.0);
      const double squares = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
      if (normalizer->divisor() == nn::Divisor::kSum) {
        const bool none = std::all_of(a.begin(), a.end(), [](double x) { return x == 0; });
        CHECK((none || std::abs(sum - 1) < 1e-14));
        CHECK((!none || normalizer->map() == nn::ScoreMap::kSquaredRelu));
      }
      if (normalizer->divisor() == nn::Divisor::kRootSquares) CHECK(std::abs(squares - 1) < 1e-14);
      if (normalizer->map() == nn::ScoreMap::kSigmoid)
        CHECK((sum > 0 && sum < static_cast<double>(n)));
      CHECK(*std::min_element(a.begin(), a.end()) >= 0);
    }
  }
}

TEST_CASE(
    "Attention-E is softmax at 512 keys, to the bit, and SSMax with s = 1 / log 512 is log_n") {
  const auto attention_e = nn::parse_normalizer("log_n(base=512, clip=16)");
  const std::string s = fmt::format("ssmax(s={})", 1 / std::log(512.0));
  const auto ssmax = nn::parse_normalizer(s);
  CHECK(attention_e->temperature(512) == 1);
  CHECK(normalizer("log_n").temperature(512) == 1);
  CHECK(weights_of(*attention_e, random_row(512, 5)) ==
        weights_of(normalizer("softmax"), random_row(512, 5)));
  for (const Index n : {1, 2, 100, 512, 5000}) {
    CAPTURE(n);
    CHECK(largest_difference(weights_of(*ssmax, random_row(n, 6)),
                             weights_of(normalizer("log_n"), random_row(n, 6))) < 1e-15);
    CHECK(std::abs(attention_e->temperature(n) - normalizer("softmax_plus").temperature(n)) <
          1e-15);
  }
}

TEST_CASE("SSMax does not see a shift, and twice the keys sharpen as n^(s z) says") {
  const nn::AttentionNormalizer& ssmax = normalizer("ssmax");
  const std::vector<double> z = random_row(40, 7);
  std::vector<double> shifted = z;
  for (double& x : shifted) x += 3;
  CHECK(largest_difference(weights_of(ssmax, z), weights_of(ssmax, shifted)) < 1e-14);
  std::vector<double> twice = z;
  twice.insert(twice.end(), z.begin(), z.end());
  const std::vector<double> once = weights_of(ssmax, z);
  const std::vector<double> sharper = weights_of(ssmax, twice);
  // a_i / a_j = n^(s (z_i − z_j)).
  for (const std::size_t i : {std::size_t{3}, std::size_t{20}}) {
    const double difference = 0.43 * (z[i] - z[0]);
    CHECK(once[i] / once[0] == doctest::Approx(std::pow(40.0, difference)).epsilon(1e-12));
    CHECK(sharper[i] / sharper[0] == doctest::Approx(std::pow(80.0, difference)).epsilon(1e-12));
  }
}

/// One problem with its queries multiplied.
Matrix<double> context_with(const nn::AttentionNormalizer& normalizer, double query, double key,
                            double scale) {
  Example<double> example({9, 11, 2, 1, 6, 4});
  for (double& x : example.query.span()) x *= query;
  for (double& x : example.key.span()) x *= key;
  nn::AttentionProblem<double> problem = example.problem(normalizer);
  problem.scale *= scale;
  return define(problem);
}

TEST_CASE("operands of length 1: what does not matter, and what a cosine is") {
  const std::vector<std::pair<const char*, std::pair<bool, bool>>> all = {
      {"kna", {false, true}}, {"qna", {true, false}}, {"cosa", {true, true}}, {"softmax", {}}};
  for (const auto& entry : all) {
    const auto& name = entry.first;
    const auto& unit = entry.second;
    CAPTURE(name);
    const nn::AttentionNormalizer& chosen = normalizer(name);
    const Matrix<double> plain = context_with(chosen, 1, 1, 1);
    CHECK((distance(plain, context_with(chosen, 3, 1, 1)) < 1e-14) == unit.first);
    CHECK((distance(plain, context_with(chosen, 1, 3, 1)) < 1e-14) == unit.second);
    // The scale of the problem is not used.
    CHECK((distance(plain, context_with(chosen, 1, 1, 3)) == 0) == !chosen.scaled());
  }
  const Example<double> example({3, 5, 1, 1, 6, 4});
  const auto cosa = nn::parse_normalizer("cosa(length=0)");
  const nn::AttentionProblem<double> problem = example.problem(*cosa);
  Matrix<double> context = context_of(problem);
  nn::attention_reference<double>(problem, context.view(), [&](Index, MatrixView<const double> a) {
    const auto dot = [&](const double* x, const double* y) {
      return std::inner_product(x, x + 6, y, 0.0);
    };
    for (Index i = 0; i < 3; ++i) {
      std::vector<double> expected(5);
      for (Index j = 0; j < 5; ++j) {
        const double* q = example.query.view().row(i);
        const double* k = example.key.view().row(j);
        expected[static_cast<std::size_t>(j)] =
            std::pow(5.0, 4 * dot(q, k) / std::sqrt(dot(q, q) * dot(k, k)));
      }
      const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
      for (double& x : expected) x /= sum;
      CHECK(largest_difference({a.row(i), a.row(i) + 5}, expected) < 1e-14);
    }
  });
}

TEST_CASE("vectors of zeros, tiny and huge ones") {
  for (const char* name : {"kna", "qna", "cosa"}) {
    CAPTURE(name);
    for (const float size : {0.0F, 1e-30F, 1e30F}) {
      CAPTURE(size);
      Example<float> example({5, 6, 1, 1, 3, 3});
      Example<double> exact({5, 6, 1, 1, 3, 3});
      for (Index d = 0; d < 3; ++d) {
        exact.query.view().at(2, d) = example.query.view().at(2, d) *= size;
        exact.key.view().at(4, d) = example.key.view().at(4, d) *= size;
      }
      const nn::AttentionNormalizer& chosen = normalizer(name);
      // A large operand that is not brought to length 1 makes large scores.
      if (size > 1 && chosen.unit_length() != nn::UnitLength::kBoth) continue;
      const Matrix<double> expected = define(exact.problem(chosen));
      for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
        CHECK(distance(evaluate(evaluation, example.problem(chosen)), expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("with position terms, every evaluation and temperature") {
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const char* text :
         {"full", "causal", "strict_causal", "tta", "window(3)", "random(0.4,2)"}) {
      CAPTURE(text);
      for (const Index n : {1, 77}) {
        const mask::BlockMap blocks(mask::parse_mask(text).bind({n, n}));
        std::vector<Index> positions(static_cast<std::size_t>(n));
        std::iota(positions.begin(), positions.end(), 0);
        const auto bias = nn::alibi_bias<double>(2, {positions, positions});
        const auto float_bias = nn::alibi_bias<float>(2, {positions, positions});
        const Example<double> exact({n, n, 2, 1, 8, 5});
        const Example<float> example(exact.shape);
        nn::AttentionProblem<double> problem = exact.problem(*normalizer, &blocks);
        nn::AttentionProblem<float> float_problem = example.problem(*normalizer, &blocks);
        problem.bias = bias.get();
        float_problem.bias = float_bias.get();
        const Matrix<double> expected = define(problem);
        const double most = tolerance(exact.shape, example.query, example.key, example.value);
        for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
          CAPTURE(evaluation.name);
          CHECK(distance(evaluate(evaluation, problem), expected) < 1e-12);
          CHECK(distance(evaluate(evaluation, float_problem), expected) < most);
        }
      }
    }
  }
}

double entropy(const std::vector<double>& a) {
  double sum = 0;
  for (const double p : a) sum -= p > 0 ? p * std::log(p) : 0;
  return sum;
}

/// Entropies of independent normal scores of deviation 2: n, then with a constant scale, with
/// log n, with √log n (all of them 1 at 512 keys), and with `gauss`.
struct EntropyRow {
  Index n;
  double constant, log_n, root, gauss;
};

TEST_CASE("entropy of weights of normal scores by length") {
  // Means of 2 million scores and more (16 million at 4096) by numpy. H of a row spreads by 0.3 to
  // 0.7.
  const std::vector<EntropyRow> rows = {
      {64, 2.6423, 3.3555, 3.0314, 4.1589},   {128, 3.1974, 3.7465, 3.4879, 4.2597},
      {256, 3.7729, 4.0858, 3.9337, 4.3101},  {512, 4.3969, 4.3969, 4.3969, 4.3969},
      {1024, 5.0240, 4.6455, 4.8400, 4.4783}, {4096, 6.3499, 5.0439, 5.7501, 4.6826}};
  for (const EntropyRow& row : rows) {
    CAPTURE(row.n);
    const Index count = (Index{1} << 21) / row.n;
    const double scale = std::sqrt(std::log(static_cast<double>(row.n)) / std::log(512.0));
    EntropyRow mean{row.n, 0, 0, 0, 0};
    std::vector<double> z(static_cast<std::size_t>(row.n));
    for (Index i = 0; i < count; ++i) {
      RandomStream(1, "entropy", static_cast<std::uint64_t>(i)).normal(0, z.size(), z.data());
      for (double& x : z) x *= 2;
      mean.constant += entropy(weights_of(normalizer("softmax"), z));
      mean.log_n += entropy(weights_of(normalizer("log_n"), z));
      mean.gauss += entropy(weights_of(normalizer("gauss"), z));
      for (double& x : z) x *= scale;
      mean.root += entropy(weights_of(normalizer("softmax"), z));
    }
    const double most = row.n < 4096 ? 0.03 : 0.06;
    const auto n = static_cast<double>(count);
    CHECK(std::abs(mean.constant / n - row.constant) < most);
    CHECK(std::abs(mean.log_n / n - row.log_n) < most);
    CHECK(std::abs(mean.root / n - row.root) < most);
    CHECK(std::abs(mean.gauss / n - row.gauss) < most);
  }
}

}  // namespace
}  // namespace masque::test
