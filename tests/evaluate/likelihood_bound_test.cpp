// The bound of masked diffusion against sums over all sets of hidden tokens.
#include "evaluate/score/likelihood_bound.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "evaluate/score/model_kinds.hpp"
#include "evaluate/score/perplexity.hpp"
#include "evaluate/score/text_scorer.hpp"
#include "fake_model.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using model::HeadKind;
using test::contains;
using test::message_of;

constexpr TokenId kBoundMask = 4;

/// [2] text [3].
Sentence text_of(const std::vector<TokenId>& text) {
  Sentence s;
  s.prefix = s.suffix = 1;
  s.ids = {2};
  s.ids.insert(s.ids.end(), text.begin(), text.end());
  s.ids.push_back(3);
  s.words.assign(s.ids.size(), 0);
  s.pieces.resize(s.ids.size(), "x");
  s.spans.resize(s.ids.size());
  return s;
}

std::vector<ScoredSentence> bounds(const model::Model& model, ScoreOptions options,
                                   const std::vector<Sentence>& sentences) {
  options.kind = ScoreKind::kMdlm;
  options.mask = kBoundMask;
  std::vector<ScoredSentence> out;
  TextScorer scorer(model, options, [&](ScoredSentence&& s) { out.push_back(std::move(s)); });
  for (std::size_t i = 0; i < sentences.size(); ++i) scorer.add(i, sentences[i]);
  scorer.flush();
  return out;
}

/// Σ over the hidden tokens of log p, by the formula of FakeModel; the mask token has none.
double sum_hidden(const Sentence& s, unsigned set) {
  std::vector<TokenId> ids = s.ids;
  const Index n = s.tokens();
  for (Index i = 0; i < n; ++i) {
    if ((set >> i & 1U) != 0) ids[static_cast<std::size_t>(s.prefix + i)] = kBoundMask;
  }
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    if ((set >> i & 1U) == 0) continue;
    auto logits = fake_logits(ids, s.prefix + i, 12, [](Index) { return true; });
    logits[kBoundMask] = -std::numeric_limits<double>::infinity();
    sum += log_softmax(logits, s.ids[static_cast<std::size_t>(s.prefix + i)]);
  }
  return sum;
}

double choose(int n, int l) {
  return std::tgamma(n + 1) / std::tgamma(l + 1) / std::tgamma(n - l + 1);
}

TEST_CASE("draws average to the sum over all sets, which the integral over rates equals") {
  const FakeModel model(HeadKind::kMasked);
  const Sentence text = text_of({5, 6, 11, 8, 9});
  constexpr int n = 5;
  double by_number = 0;
  double by_rate = 0;
  for (unsigned set = 1; set < 1U << n; ++set) {
    const int l = std::popcount(set);
    const double sum = sum_hidden(text, set);
    by_number += sum / n * n / l / choose(n, l);
    // ∫ t^(l−1) (1 − t)^(n−l) dt.
    by_rate += sum * std::tgamma(l) * std::tgamma(n - l + 1) / std::tgamma(n + 1);
  }
  CHECK(by_number == doctest::Approx(by_rate).epsilon(1e-12));

  constexpr int kTexts = 3000;
  for (const Index draws : {2, 5, 7}) {
    CAPTURE(draws);
    Moments scores;
    double variance = 0;
    for (const ScoredSentence& s :
         bounds(model, {.draws = draws}, std::vector<Sentence>(kTexts, text))) {
      CHECK(s.tokens == 5);
      scores.add(s.score);
      variance += *s.score_variance / kTexts;
    }
    const double found = scores.sum_squares / (kTexts - 1);
    CHECK(std::abs(scores.mean - by_number) < 4 * std::sqrt(found / kTexts));
    // What is said of the error is on average not too little.
    CHECK(found < 1.1 * variance);
  }
}

TEST_CASE("one token has no draws to make, and a bound is a function of the text's number") {
  const FakeModel model(HeadKind::kMasked);
  const auto one = bounds(model, {.draws = 4}, {text_of({7}), text_of({}), text_of({7, 8, 9})});
  REQUIRE(one.size() == 3);
  CHECK(one[0].score == doctest::Approx(sum_hidden(text_of({7}), 1)).epsilon(1e-14));
  CHECK(*one[0].score_variance == doctest::Approx(0).epsilon(1e-20));
  CHECK(one[1].tokens == 0);
  CHECK(*one[1].score_variance == 0);
  for (const Index batch_tokens : {1, 17, 100000}) {
    const auto again = bounds(model, {.batch_tokens = batch_tokens, .draws = 4},
                              {text_of({5}), text_of({6}), text_of({7, 8, 9})});
    CHECK(again[2].log_probabilities == one[2].log_probabilities);
    CHECK(again[2].score == one[2].score);
  }
  const auto other = bounds(model, {.draws = 4}, {text_of({7, 8, 9})});
  CHECK(other[0].score != one[2].score);
}

TEST_CASE("draws: numbers of hidden tokens are spread evenly, in every block") {
  for (const Index block : {0, 4}) {
    Draw draw(1, "test");
    const std::vector<HiddenTokens> all = draw_hidden(1, 13, block, 12, draw);
    REQUIRE(all.size() == 12);
    for (const Index begin : {1, 4, 8, 12}) {
      const Index end = block == 0 ? 13 : std::min<Index>(13, begin / 4 * 4 + 4);
      const Index n = end - begin;
      std::multiset<Index> numbers;
      for (const HiddenTokens& one : all) {
        CHECK(std::ranges::is_sorted(one.places, std::less_equal<>()));
        Index count = 0;
        for (std::size_t i = 0; i < one.places.size(); ++i) {
          if (one.places[i] < begin || one.places[i] >= end) continue;
          ++count;
        }
        numbers.insert(count);
        for (std::size_t i = 0; i < one.places.size(); ++i) {
          if (one.places[i] >= begin && one.places[i] < end)
            CHECK(one.weights[i] ==
                  doctest::Approx(static_cast<double>(n) / static_cast<double>(count)));
        }
      }
      // 12 draws, and n divides 12.
      for (Index l = 1; l <= n; ++l)
        CHECK(std::ssize(numbers) / n == static_cast<Index>(numbers.count(l)));
      if (block == 0) break;
    }
  }
}

TEST_CASE(
    "block diffusion: blocks of one token are an exact likelihood, one large block the whole") {
  const std::string path = std::string(MASQUE_TEST_DATA) + "/model/bert";
  const auto model = model::open_model(path, {.precision = kernel::Precision::kF64});
  const Sentence text = text_of({5, 6, 11, 8, 9, 20, 21});
  double exact = 0;
  for (Index t = text.prefix; t < text.size() - text.suffix; ++t) {
    std::vector<TokenId> ids(text.ids.begin(), text.ids.begin() + t + 1);
    ids.back() = kBoundMask;
    model::Batch batch;
    batch.add(ids, {.positions = {},
                    .segments = {},
                    .mask = mask::parse_mask("causal").bind({t + 1, t + 1}),
                    .query_mask = {}});
    model::Request request;
    request.rows = {t};
    request.targets = {text.ids[static_cast<std::size_t>(t)]};
    request.excluded = kBoundMask;
    exact += model->run(batch, request)[0];
  }
  const auto one = bounds(*model, {.draws = 3, .block_size = 1}, {text})[0];
  CHECK(one.score == doctest::Approx(exact).epsilon(1e-12));
  CHECK(*one.score_variance < 1e-20);
  const auto large = bounds(*model, {.draws = 6, .block_size = 50}, {text})[0];
  const auto whole = bounds(*model, {.draws = 6}, {text})[0];
  CHECK(large.score == doctest::Approx(whole.score).epsilon(1e-12));
  CHECK(*large.score_variance == doctest::Approx(*whole.score_variance).epsilon(1e-9));
  const auto small = bounds(*model, {.draws = 6, .block_size = 3}, {text})[0];
  CHECK(small.score != whole.score);
}

TEST_CASE("a perplexity has the error of its draws, in parts that add up") {
  const FakeModel model(HeadKind::kMasked);
  const auto scored = bounds(model, {.draws = 4}, {text_of({5, 6, 7}), text_of({8, 9, 10, 11})});
  Perplexity all;
  Perplexity part;
  all.add(scored[0]);
  part.add(scored[1]);
  all.add(part);
  const double variance = *scored[0].score_variance + *scored[1].score_variance;
  CHECK(*all.score_variance == doctest::Approx(variance));
  CHECK(all.standard_error() == doctest::Approx(all.per_token() * std::sqrt(variance) / 7));
}

TEST_CASE("what masked diffusion cannot score is refused") {
  const FakeModel model(HeadKind::kMasked);
  TextScorer scorer(model, {.kind = ScoreKind::kMdlm, .mask = kBoundMask}, [](ScoredSentence&&) {});
  CHECK(contains(*scorer.length_problem(text_of({5, kBoundMask})), "the text has a mask token"));
  CHECK_FALSE(scorer.length_problem(text_of({5})));
  CHECK_THROWS_AS(TextScorer(model, {.kind = ScoreKind::kMdlm}, [](ScoredSentence&&) {}),
                  InputError);
  CHECK_NOTHROW(check_kind(ScoreKind::kMdlm, model.design(), {}));
  const FakeModel two(HeadKind::kMasked, model::DefaultMask::kFull, model::Streams::kTwo);
  CHECK(contains(message_of<InputError>([&] { check_kind(ScoreKind::kMdlm, two.design(), {}); }),
                 "two streams"));
  const FakeModel causal(HeadKind::kCausal, model::DefaultMask::kCausal);
  CHECK_THROWS_AS(check_kind(ScoreKind::kMdlm, causal.design(), {}), InputError);
}

}  // namespace
}  // namespace masque::evaluate
