// Metrics of texts against sacreBLEU and rouge_score (scripts/goldens/compare_texts.py); intervals
// and tests of differences against sums made line by line.
#include "evaluate/score/text_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/random/random.hpp"
#include "evaluate/score/text_comparison.hpp"
#include "evaluate/score/word_error_rate.hpp"
#include "evaluate/statistics/resampling.hpp"

namespace masque::evaluate {
namespace {

std::vector<TextMetric> all_metrics() {
  std::vector<TextMetric> metrics;
  for (const auto& [name, metric] : text_metric_names()) metrics.push_back(metric);
  return metrics;
}

std::vector<std::string> texts_of(const JsonValue& list) {
  std::vector<std::string> out;
  for (const JsonValue& item : list.items) out.push_back(item.text);
  return out;
}

/// The golden's texts.
struct Texts {
  Texts() {
    const std::string path = std::string(MASQUE_TEST_DATA) + "/evaluate/compare.json";
    root = parse_json_file(read_text(path, 1 << 20), path);
    first = texts_of(*root.find("first"));
    second = texts_of(*root.find("second"));
    for (const JsonValue& list : root.find("references")->items)
      references.push_back(texts_of(list));
  }

  /// Counts of all lines, one after the other.
  std::vector<std::uint32_t> counts(const std::vector<std::vector<std::string>>& systems,
                                    std::size_t used, const std::vector<TextMetric>& metrics,
                                    BleuTokenizer tokenizer) const {
    LineCounter counter(metrics, tokenizer);
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < first.size(); ++i) {
      std::vector<std::string_view> of_line;
      for (std::size_t r = 0; r < used; ++r) of_line.emplace_back(references[r][i]);
      for (const auto& system : systems) counter.add(system[i], of_line, out);
    }
    return out;
  }

  JsonValue root;
  std::vector<std::string> first;
  std::vector<std::string> second;
  std::vector<std::vector<std::string>> references;
};

/// Compares a system with what the golden says of one metric.
void check_values(const Texts& texts, const std::vector<std::string>& system, std::size_t used,
                  const JsonValue& expected, const std::string& name, TextMetric metric,
                  BleuTokenizer tokenizer) {
  CAPTURE(name);
  const std::vector<std::uint32_t> counts = texts.counts({system}, used, {metric}, tokenizer);
  TextComparison comparison({metric}, 1, false);
  comparison.add(counts);
  const double value = comparison.results({.samples = 0, .trials = 0}).at(0).value;
  const double wanted = expected.find("corpus")->find(name)->number().value();
  CHECK(std::abs(value - wanted) <= 1e-11 * std::abs(wanted));
  const JsonValue* lines = expected.find("lines")->find(name);
  if (lines == nullptr) return;
  REQUIRE(lines->items.size() == system.size());
  for (std::size_t i = 0; i < system.size(); ++i) {
    CAPTURE(system[i]);
    const double of_line = line_value(metric, counts.data() + i * count_width(metric));
    CHECK(std::abs(of_line - lines->items[i].number().value()) <= 1e-11);
  }
}

}  // namespace

TEST_CASE("corpora and lines have the values of sacreBLEU and rouge_score") {
  const Texts texts;
  struct Case {
    std::string name;
    const std::vector<std::string>* system;
    std::size_t references;
  };
  for (const Case& c : {Case{"first-of-1", &texts.first, 1}, Case{"first-of-3", &texts.first, 3},
                        Case{"second-of-3", &texts.second, 3}}) {
    CAPTURE(c.name);
    const JsonValue& expected = *texts.root.find(c.name);
    for (const auto& [name, tokenizer] : bleu_tokenizer_names()) {
      check_values(texts, *c.system, c.references, expected, "bleu-" + std::string(name),
                   TextMetric::kBleu, tokenizer);
    }
    for (const auto& [name, metric] : text_metric_names()) {
      if (metric == TextMetric::kBleu) continue;
      check_values(texts, *c.system, c.references, expected, std::string(name), metric,
                   BleuTokenizer::k13a);
    }
  }
}

TEST_CASE("word errors are those of the alignment") {
  const Texts texts;
  const auto counts = texts.counts({texts.first}, 1, {TextMetric::kWer}, BleuTokenizer::k13a);
  for (std::size_t i = 0; i < texts.first.size(); ++i) {
    const WordErrors errors = word_errors(texts.references[0][i], texts.first[i]);
    CHECK(counts[2 * i] == errors.errors());
    CHECK(counts[2 * i + 1] == errors.words);
  }
}

TEST_CASE("n-grams are clipped by the reference with most of them") {
  NgramMatcher matcher;
  std::vector<std::uint32_t> matches(3);
  const std::vector<std::u32string_view> references = {U"aab", U"bca"};
  matcher.match(U"aaab", references, matches);
  CHECK(matches == std::vector<std::uint32_t>{3, 2, 1});  // a a b; aa ab; aab
  matcher.match(U"", references, matches);
  CHECK(matches == std::vector<std::uint32_t>{0, 0, 0});
  const std::vector<std::u32string_view> empty = {U""};
  matcher.match(U"ab", empty, matches);
  CHECK(matches == std::vector<std::uint32_t>{0, 0, 0});
  // Many symbols, so that the table grows and places collide.
  std::u32string text;
  for (char32_t c = 0; c < 5000; ++c) text += static_cast<char32_t>(c * 65536);
  const std::u32string_view view = text;
  matcher.match(text, {&view, 1}, matches);
  CHECK(matches == std::vector<std::uint32_t>{5000, 4999, 4998});
}

TEST_CASE("empty texts: nothing to divide by, and nothing wrong") {
  LineCounter counter(all_metrics(), BleuTokenizer::k13a);
  std::vector<std::uint32_t> counts;
  const std::string_view empty;
  counter.add("", {&empty, 1}, counts);
  std::map<TextMetric, double> values;
  std::size_t at = 0;
  for (const TextMetric m : all_metrics()) {
    values[m] = line_value(m, counts.data() + at);
    at += count_width(m);
  }
  CHECK(at == counts.size());
  CHECK(values[TextMetric::kExactMatch] == 1);
  CHECK(values[TextMetric::kBleu] == 0);
  CHECK(values[TextMetric::kChrf] == 0);
  CHECK(values[TextMetric::kRougeL] == 0);
  CHECK(values[TextMetric::kEditDistance] == 0);
  CHECK(std::isnan(values[TextMetric::kTokenAccuracy]));
  CHECK(std::isnan(values[TextMetric::kWer]));
}

TEST_CASE("sums of draws are those of the rows drawn one by one") {
  // More rows than a tile, more replicates than a group.
  constexpr Index kRows = 700;
  constexpr Index kWidth = 3;
  std::vector<double> values(static_cast<std::size_t>(kRows * kWidth));
  RandomStream(1, "resampling test").normal(0, values.size(), values.data());
  SampledRows rows{kRows, kWidth, {}};
  rows.read = [&](Index first, Index count, double* out) {
    for (Index i = 0; i < count; ++i) {
      for (Index k = 0; k < kWidth; ++k)
        out[k * count + i] = values[static_cast<std::size_t>((first + i) * kWidth + k)];
    }
  };
  for (const RowDraw how : {RowDraw::kBootstrap, RowDraw::kCoin}) {
    ResamplingRequest request{how, 37, 5, 1, {}};
    const std::vector<double> sums = resampled_sums(rows, request);
    request.threads = 3;
    CHECK(resampled_sums(rows, request) == sums);
    REQUIRE(sums.size() == 37 * kWidth);
    for (std::size_t r = 0; r < 37; ++r) {
      std::vector<Index> times(kRows);
      if (how == RowDraw::kBootstrap) {
        Draw draw(5, "bootstrap", r);
        for (Index i = 0; i < kRows; ++i) ++times[static_cast<std::size_t>(draw.below(kRows))];
      } else {
        std::vector<std::uint32_t> words(kRows / 32 + 1);
        RandomStream(5, "coin", r).words(words.size(), words.data());
        for (std::size_t i = 0; i < kRows; ++i)
          times[i] = static_cast<Index>(words[i / 32] >> (i % 32) & 1);
      }
      for (std::size_t k = 0; k < kWidth; ++k) {
        double sum = 0;
        for (std::size_t i = 0; i < kRows; ++i)
          sum += static_cast<double>(times[i]) * values[i * kWidth + k];
        CHECK(sums[r * kWidth + k] == doctest::Approx(sum).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("p counts what is larger, not what is equal but for rounding") {
  const std::vector<double> statistics = {0, 1, 2, 2 + 1e-14, 3};
  CHECK(exceedance(statistics, 2, 2) == 2 / 6.0);
  CHECK(exceedance(statistics, 0.5, 1) == 5 / 6.0);
  const std::vector<double> a = {1, 2, 4};
  const std::vector<double> b = {1, 1, 1};
  CHECK(randomization_p(a, b, 3, 2) == 2 / 4.0);     // 0 1 3 against 1
  CHECK(paired_bootstrap_p(a, b, 3, 2) == 2 / 4.0);  // −4/3 −1/3 5/3 against 1
  CHECK(paired_bootstrap_p(a, b, 1, 1) == 2 / 4.0);
  CHECK(randomization_p(b, b, 1, 1) == 1 / 4.0);
}

namespace {

/// The same results by going through the lines of every draw.
std::vector<MetricResult> slow_results(const std::vector<TextMetric>& metrics,
                                       const std::vector<std::uint32_t>& counts, std::size_t lines,
                                       const ComparisonRequest& request) {
  const std::size_t width = count_width(metrics);
  std::vector<MetricResult> out;
  std::size_t first = 0;
  for (const TextMetric metric : metrics) {
    const std::size_t own = count_width(metric);
    // Value of system s (0 or 1) when line i counts times[i], of the other system if it is
    // exchanged.
    const auto value = [&](std::size_t s, const std::vector<int>& times,
                           const std::vector<bool>& exchanged) {
      std::vector<double> sums(own);
      std::vector<double> terms(own);
      for (std::size_t i = 0; i < lines; ++i) {
        const std::size_t from = exchanged[i] ? 1 - s : s;
        put_terms(metric, counts.data() + (2 * i + from) * width + first, terms.data());
        for (std::size_t k = 0; k < own; ++k) sums[k] += times[i] * terms[k];
      }
      return metric_value(metric, sums);
    };
    const std::vector<int> once(lines, 1);
    const std::vector<bool> none(lines);
    MetricResult result;
    result.metric = metric;
    result.value = value(0, once, none);
    result.against = value(1, once, none);
    std::vector<double> a, b, difference;
    for (Index r = 0; r < request.samples; ++r) {
      Draw draw(request.seed, "bootstrap", static_cast<std::uint64_t>(r));
      std::vector<int> times(lines);
      for (std::size_t i = 0; i < lines; ++i)
        ++times[static_cast<std::size_t>(draw.below(static_cast<Index>(lines)))];
      a.push_back(value(0, times, none));
      b.push_back(value(1, times, none));
      difference.push_back(a.back() - b.back());
    }
    result.p_bootstrap = paired_bootstrap_p(a, b, result.value, *result.against);
    result.interval = bootstrap_interval(a, static_cast<Index>(lines), request.level);
    result.difference_interval =
        bootstrap_interval(difference, static_cast<Index>(lines), request.level);
    a.clear();
    b.clear();
    for (Index r = 0; r < request.trials; ++r) {
      std::vector<std::uint32_t> words(lines / 32 + 1);
      RandomStream(request.seed, "coin", static_cast<std::uint64_t>(r))
          .words(words.size(), words.data());
      std::vector<bool> exchanged(lines);
      for (std::size_t i = 0; i < lines; ++i) exchanged[i] = (words[i / 32] >> (i % 32) & 1) != 0;
      a.push_back(value(0, once, exchanged));
      b.push_back(value(1, once, exchanged));
    }
    result.p_randomization = randomization_p(a, b, result.value, *result.against);
    out.push_back(result);
    first += own;
  }
  return out;
}

}  // namespace

TEST_CASE("intervals and p-values are those of the draws, line by line") {
  const Texts texts;
  const std::vector<TextMetric> metrics = all_metrics();
  const auto counts = texts.counts({texts.first, texts.second}, 2, metrics, BleuTokenizer::k13a);
  TextComparison comparison(metrics, 2, true);
  comparison.add(counts);
  CHECK(comparison.lines() == texts.first.size());
  const ComparisonRequest request{.samples = 50, .trials = 70, .seed = 3, .threads = 2};
  const auto results = comparison.results(request);
  const auto slow = slow_results(metrics, counts, texts.first.size(), request);
  REQUIRE(results.size() == metrics.size());
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    CAPTURE(m);
    const auto near = [](double x, double y) { CHECK(x == doctest::Approx(y).epsilon(1e-12)); };
    near(results[m].value, slow[m].value);
    near(*results[m].against, *slow[m].against);
    near(results[m].interval->low, slow[m].interval->low);
    near(results[m].interval->high, slow[m].interval->high);
    near(results[m].difference_interval->low, slow[m].difference_interval->low);
    near(results[m].difference_interval->high, slow[m].difference_interval->high);
    CHECK(*results[m].p_bootstrap == *slow[m].p_bootstrap);
    CHECK(*results[m].p_randomization == *slow[m].p_randomization);
    CHECK(results[m].interval->low < results[m].value);
    CHECK(results[m].interval->high > results[m].value);
  }
}

TEST_CASE("p-values are those of sacreBLEU but for the draws") {
  const Texts texts;
  const std::vector<TextMetric> metrics = {TextMetric::kBleu, TextMetric::kChrf};
  TextComparison comparison(metrics, 2, true);
  comparison.add(texts.counts({texts.first, texts.second}, 1, metrics, BleuTokenizer::k13a));
  const auto results = comparison.results({.samples = 4000, .trials = 4000});
  for (const MetricResult& result : results) {
    const std::string name(name_in(text_metric_names(), result.metric));
    CAPTURE(name);
    const auto near = [&](const char* test, double p) {
      const double theirs = texts.root.find("p")->find(test)->find(name)->number().value();
      // Both are shares of 4000 draws.
      CHECK(std::abs(p - theirs) < 4 * std::sqrt(2 * theirs * (1 - theirs) / 4000));
    };
    near("bs", *result.p_bootstrap);
    near("ar", *result.p_randomization);
  }
}

TEST_CASE("few lines have no interval") {
  const Texts texts;
  const auto counts =
      texts.counts({texts.first, texts.second}, 1, {TextMetric::kRougeL}, BleuTokenizer::k13a);
  for (const Index lines : {kFewestSampledRows - 1, kFewestSampledRows}) {
    TextComparison comparison({TextMetric::kRougeL}, 2, true);
    const auto used = static_cast<std::size_t>(lines);
    REQUIRE(texts.first.size() >= used);
    comparison.add(std::span(counts).first(used * 2 * count_width(TextMetric::kRougeL)));
    const auto results = comparison.results({.samples = 20, .trials = 20});
    CHECK(results[0].interval.has_value() == (lines == kFewestSampledRows));
    CHECK(results[0].difference_interval.has_value() == (lines == kFewestSampledRows));
    CHECK(results[0].p_bootstrap.has_value());
  }
}

}  // namespace masque::evaluate
