// Ablation, corruption, averages and ratio means against brute force.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "evaluate/attention/ablation.hpp"
#include "evaluate/score/model_average.hpp"
#include "evaluate/score/token_distribution.hpp"
#include "evaluate/states/consistency.hpp"
#include "fake_model.hpp"

namespace masque::evaluate {
namespace {

using model::AttentionOverride;
using model::HeadKind;

std::unique_ptr<model::Model> open(const std::string& name) {
  model::ModelOptions options;
  options.precision = kernel::Precision::kF64;
  options.mask_token_id = 4;
  return model::open_model(MASQUE_TEST_DATA "/model/" + name, options);
}

Sequence sequence_of(Index n, Index vocabulary, std::uint64_t number = 0) {
  Sequence sequence;
  sequence.number = number;
  for (Index i = 0; i < n; ++i) {
    const Index id = 5 + (7 * i + 3 + static_cast<Index>(number)) % (vocabulary - 5);
    sequence.ids.push_back(static_cast<TokenId>(id));
  }
  return sequence;
}

/// Last states and logits of one sequence.
class Last final : public model::Observer {
 public:
  void last_states(Index, Index, MatrixView<const double> x) override {
    states = Matrix<double>::copy(x);
  }
  void logits(Index, Index, MatrixView<const double> x) override {
    logit_rows = Matrix<double>::copy(x);
  }
  Matrix<double> states, logit_rows;
};

Last last_of(const model::Model& model, const Sequence& sequence) {
  model::Batch batch;
  batch.add(sequence.ids);
  batch.positions = sequence.positions;
  model::Request request;
  request.logits = true;
  request.last_states = true;
  request.all_rows = true;
  Last last;
  model.run(batch, request, &last);
  return last;
}

}  // namespace

TEST_CASE("a ratio mean has the error of whole lines") {
  RatioMean mean;
  CHECK(std::isnan(mean.mean()));
  mean.add(2, 1);
  CHECK(std::isnan(mean.standard_error()));
  mean.add(4, 1);
  mean.add(9, 1);
  mean.add(5, 0);  // nothing
  CHECK(mean.lines == 3);
  CHECK(mean.mean() == doctest::Approx(5));
  // Of equal counts: that of the mean of three numbers, s / √3.
  CHECK(mean.standard_error() == doctest::Approx(std::sqrt((9.0 + 1 + 16) / 2 / 3)));
  RatioMean same;
  same.add(3, 1);
  same.add(6, 2);
  same.add(9, 3);
  CHECK(same.mean() == doctest::Approx(3));
  CHECK(same.standard_error() == doctest::Approx(0));
}

TEST_CASE("ablation: the loss of each layer is that of a model with the override, line by line") {
  const auto model = open("bert");
  ScoreOptions options;
  options.mask = 4;
  options.batch_tokens = 30;
  Ablation ablation(*model, options);
  std::vector<Sentence> sentences;
  for (const Index n : {6, 3, 9}) {
    Sentence sentence;
    sentence.ids = sequence_of(n, model->design().vocab_size, static_cast<std::uint64_t>(n)).ids;
    sentence.pieces.resize(sentence.ids.size());
    for (Index i = 0; i < n; ++i) sentence.words.push_back(static_cast<std::uint32_t>(i));
    sentences.push_back(sentence);
    ablation.add(sentences.size() - 1, sentence);
  }
  ablation.flush();
  const std::vector<AblationRow>& rows = ablation.rows();
  REQUIRE(rows.size() == 7);
  CHECK(rows[0].attention == AttentionOverride::kIntact);
  CHECK(rows[0].gap.mean() == 0);
  for (const AblationRow& row : rows) {
    CAPTURE(row.layer.value_or(-1));
    CAPTURE(static_cast<int>(row.attention));
    std::vector<AttentionOverride> attention(2, AttentionOverride::kIntact);
    if (row.layer) {
      attention[static_cast<std::size_t>(*row.layer)] = row.attention;
    } else {
      attention.assign(2, row.attention);
    }
    double loss = 0;
    double tokens = 0;
    for (const Sentence& sentence : sentences) {
      for (std::size_t t = 0; t < sentence.ids.size(); ++t) {
        model::Batch batch;
        batch.add(sentence.ids);
        batch.ids[t] = 4;
        model::Request request;
        request.rows = {static_cast<Index>(t)};
        request.targets = {sentence.ids[t]};
        request.attention = attention;
        loss -= model->run(batch, request).front();
        ++tokens;
      }
    }
    CHECK(row.loss.counts == tokens);
    CHECK(row.loss.lines == 3);
    CHECK(row.loss.mean() == doctest::Approx(loss / tokens).epsilon(1e-12));
    CHECK(row.gap.mean() ==
          doctest::Approx(row.loss.mean() - rows[0].loss.mean()).epsilon(1e-9).scale(1));
    if (&row != &rows[0]) CHECK(std::abs(row.gap.mean()) > 1e-6);
  }
  CHECK(rows[1].layer == 0);
  CHECK(rows[4].layer == 1);
  CHECK(!rows[6].layer);
}

TEST_CASE("corruption: the same tokens for every kind, more of them at a higher rate") {
  Sequence sequence = sequence_of(40, 45, 3);
  sequence.prefix = 1;
  sequence.suffix = 2;
  const auto numbers = selection_numbers(sequence, 5, "test");
  CHECK(numbers == selection_numbers(sequence, 5, "test"));
  CHECK(numbers != selection_numbers(sequence, 6, "test"));
  const RandomStream random(5, "tokens", 3);
  const auto run = [&](TokenNoise corruption, double rate) {
    return corrupt(sequence, numbers, rate, corruption, TokenId{4}, random, 45);
  };
  const Corrupted mask = run(TokenNoise::kMask, 0.4);
  const Corrupted drop = run(TokenNoise::kDrop, 0.4);
  CHECK(mask.selected == drop.selected);
  CHECK(mask.selected == run(TokenNoise::kRandom, 0.4).selected);
  CHECK(mask.kept == drop.kept);
  CHECK(mask.rows == mask.kept);
  CHECK(std::ssize(mask.selected) + std::ssize(mask.kept) == 37);
  const std::vector<Index> fewer = run(TokenNoise::kMask, 0.1).selected;
  CHECK(std::includes(mask.selected.begin(), mask.selected.end(), fewer.begin(), fewer.end()));
  CHECK(run(TokenNoise::kMask, 1).selected.size() == 37);
  CHECK(run(TokenNoise::kNone, 0.4).sequence.ids == sequence.ids);
  CHECK(drop.sequence.size() == 40 - std::ssize(drop.selected));
  for (std::size_t i = 0; i < drop.kept.size(); ++i) {
    const auto row = static_cast<std::size_t>(drop.rows[i]);
    const auto from = static_cast<std::size_t>(drop.kept[i]);
    CHECK(drop.sequence.positions[row] == drop.kept[i]);
    CHECK(drop.sequence.ids[row] == sequence.ids[from]);
    CHECK(mask.sequence.ids[from] == sequence.ids[from]);
  }
  for (const Index i : mask.selected) CHECK(mask.sequence.ids[static_cast<std::size_t>(i)] == 4);
  CHECK(named_value("corruptions", "drop", token_noise_names()) == TokenNoise::kDrop);
  CHECK_THROWS_AS(named_value("corruptions", "dropp", token_noise_names()), UsageError);
}

TEST_CASE("consistency: distances of a text from its corrupted copies, done again by hand") {
  const auto model = open("bert");
  ConsistencyRequest request;
  request.corruptions = {TokenNoise::kNone, TokenNoise::kMask, TokenNoise::kDrop,
                         TokenNoise::kRandom};
  request.rates = {0.3};
  request.mask = 4;
  request.batch_tokens = 20;
  Consistency consistency(*model, request);
  const Sequence sequence = sequence_of(17, model->design().vocab_size, 8);
  consistency.add(sequence);
  const auto numbers = selection_numbers(sequence, 0, "consistency");
  const Last plain = last_of(*model, sequence);
  for (const ConsistencyRow& row : consistency.rows()) {
    CAPTURE(std::string(name_in(token_noise_names(), row.corruption)));
    const Corrupted copy =
        corrupt(sequence, numbers, 0.3, row.corruption, TokenId{4},
                RandomStream(0, "consistency tokens", 8), model->design().vocab_size);
    REQUIRE(copy.kept.size() > 3);
    const Last changed = last_of(*model, copy.sequence);
    double distance = 0, kl = 0;
    for (std::size_t i = 0; i < copy.kept.size(); ++i) {
      const auto a = changed.states.view().row_span(copy.rows[i]);
      const auto b = plain.states.view().row_span(copy.kept[i]);
      double apart = 0, norm = 0;
      for (std::size_t c = 0; c < a.size(); ++c) {
        apart += (a[c] - b[c]) * (a[c] - b[c]);
        norm += b[c] * b[c];
      }
      distance += std::sqrt(apart / norm);
      const auto q = predict<const double>(changed.logit_rows.view().row_span(copy.rows[i]));
      const auto p = predict<const double>(plain.logit_rows.view().row_span(copy.kept[i]));
      kl += divergence(p, q);
    }
    const auto n = static_cast<double>(copy.kept.size());
    CHECK(row.distance.counts == n);
    CHECK(row.distance.mean() == doctest::Approx(distance / n).epsilon(1e-12));
    CHECK(row.divergence.mean() == doctest::Approx(kl / n).epsilon(1e-9));
    const bool none = row.corruption == TokenNoise::kNone;
    CHECK((row.distance.mean() == 0) == none);
    CHECK((row.total_variation.mean() == 0) == none);
    CHECK((row.cosine.mean() > 1 - 1e-12) == none);
  }
  const auto headless = open("bert_headless");
  Consistency without(*headless, request);
  without.add(sequence_of(9, headless->design().vocab_size));
  CHECK(without.rows()[1].distance.lines == 1);
  CHECK(without.rows()[1].divergence.lines == 0);
  request.mask.reset();
  CHECK_THROWS_AS(Consistency(*model, request), InputError);
}

TEST_CASE("model average: of one sample it is that sample, of itself it is no distance") {
  const auto model = open("bert");
  const Sequence sequence = sequence_of(18, model->design().vocab_size, 2);
  AverageRequest request;
  request.rates = {0.15, 0.8};
  request.samples = {1, 4};
  request.mask = 4;
  ModelAverage average(*model, model.get(), request);
  average.add(sequence);
  const std::vector<AverageRow>& rows = average.rows();
  REQUIRE(rows.size() == 4);
  for (const AverageRow& row : rows) {
    CHECK(row.raw_loss.lines == 1);
    CHECK(row.raw_loss.mean() == row.corrected_loss.mean());
    CHECK(row.raw_hits.mean() == row.corrected_hits.mean());
    CHECK(row.from_raw.mean() == row.from_corrected.mean());
    CHECK(row.from_raw.mean() > 0);
  }
  // More of the text is gone: farther from the model that reads it all.
  CHECK(rows[3].from_raw.mean() > rows[1].from_raw.mean());
  // Nothing is ever changed: the average is the model.
  request.mask_share = 0;
  request.random_share = 0;
  ModelAverage still(*model, nullptr, request);
  still.add(sequence);
  for (const AverageRow& row : still.rows()) {
    CHECK(row.from_raw.mean() <= 1e-12);
    CHECK(row.average_loss.mean() == doctest::Approx(row.raw_loss.mean()).epsilon(1e-12));
    CHECK(row.average_hits.mean() == row.raw_hits.mean());
    CHECK(row.from_corrected.lines == 0);
  }
  // The evaluated tokens are a share of all, and their loss is that of the model.
  const auto numbers = selection_numbers(sequence, 0, "average");
  const Last plain = last_of(*model, sequence);
  double loss = 0, count = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0.25) continue;
    const auto p = predict<const double>(plain.logit_rows.view().row_span(static_cast<Index>(i)));
    loss -= p.logarithm[static_cast<std::size_t>(sequence.ids[i])];
    ++count;
  }
  REQUIRE(count > 0);
  CHECK(rows[0].raw_loss.counts == count);
  CHECK(rows[0].raw_loss.mean() == doctest::Approx(loss / count).epsilon(1e-9));
  // A sample that is known: all tokens are masked that are not evaluated.
  request.rates = {1};
  request.samples = {1};
  request.mask_share = 1;
  ModelAverage one(*model, nullptr, request);
  one.add(sequence);
  Sequence masked = sequence;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0.25) masked.ids[i] = 4;
  }
  const Last seen = last_of(*model, masked);
  double one_loss = 0, one_far = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0.25) continue;
    const auto row = static_cast<Index>(i);
    const auto p = predict<const double>(seen.logit_rows.view().row_span(row));
    one_loss -= p.logarithm[static_cast<std::size_t>(sequence.ids[i])];
    one_far += divergence(p, predict<const double>(plain.logit_rows.view().row_span(row)));
  }
  CHECK(one.rows()[0].average_loss.mean() == doctest::Approx(one_loss / count).epsilon(1e-12));
  CHECK(one.rows()[0].from_raw.mean() == doctest::Approx(one_far / count).epsilon(1e-12));
  CHECK_THROWS_AS(ModelAverage(*open("gpt2"), nullptr, request), InputError);
}

TEST_CASE("model average: predicted tokens that are masked, or corrupted as the others") {
  const auto model = open("bert");
  const Sequence sequence = sequence_of(18, model->design().vocab_size, 2);
  const auto numbers = selection_numbers(sequence, 0, "average");
  AverageRequest request;
  request.rates = {1};
  request.samples = {1};
  request.mask = 4;
  request.mask_share = 1;
  request.random_share = 0;
  Sequence targets = sequence, all = sequence;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0.25) targets.ids[i] = 4;
    if (numbers[i] < 1) all.ids[i] = 4;
  }
  const Last plain = last_of(*model, sequence), hidden = last_of(*model, targets),
             masked = last_of(*model, all);
  for (const auto predicted : {PredictedTokens::kMasked, PredictedTokens::kCorrupted}) {
    request.predicted = predicted;
    ModelAverage average(*model, nullptr, request);
    average.add(sequence);
    // What the model is compared with reads all tokens, or all but the predicted ones.
    const Last& raw = predicted == PredictedTokens::kMasked ? hidden : plain;
    double loss = 0, raw_loss = 0, far = 0, count = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] >= 0.25) continue;
      const auto row = static_cast<Index>(i);
      const auto p = predict<const double>(masked.logit_rows.view().row_span(row));
      const auto q = predict<const double>(raw.logit_rows.view().row_span(row));
      loss -= p.logarithm[static_cast<std::size_t>(sequence.ids[i])];
      raw_loss -= q.logarithm[static_cast<std::size_t>(sequence.ids[i])];
      far += divergence(p, q);
      ++count;
    }
    REQUIRE(count > 0);
    const AverageRow& found = average.rows().front();
    CHECK(found.average_loss.mean() == doctest::Approx(loss / count).epsilon(1e-12));
    CHECK(found.raw_loss.mean() == doctest::Approx(raw_loss / count).epsilon(1e-9));
    CHECK(found.from_raw.mean() == doctest::Approx(far / count).epsilon(1e-9));
  }
}

}  // namespace masque::evaluate
