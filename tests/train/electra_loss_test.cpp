// The update of ELECTRA and its ablations.
#include "train/loss/electra_loss.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "electra_case.hpp"
#include "support/message.hpp"
#include "train/run/trainer.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

bool of_generator(const std::string& name) { return name.starts_with("generator."); }

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

TrainerOptions trainer_options() {
  TrainerOptions options;
  options.schedule = {.learning_rate = 5e-3, .steps = 40};
  options.batch_size = 5;
  options.hidden_dropout = 0.1;
  options.seed = 2;
  return options;
}

}  // namespace

TEST_CASE("the joint loss weighs the second network by lambda, in value and gradients") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus);
  for (const ElectraVariant& variant : electra_variants()) {
    CAPTURE(variant.name);
    Pair<double> joint({variant.name, 0.5, 0, 50});
    Pair<double> alone({variant.name, 0.5, 0, 0});
    Pair<double> once({variant.name, 0.5, 0, 1});
    StepLosses losses;
    for (Pair<double>* pair : {&joint, &alone, &once}) {
      pair->loss->prepare();
      const StepLosses found = pair->loss->add_gradients(items, {});
      if (pair == &joint) losses = found;
    }
    REQUIRE(losses.parts.size() == 2);
    CHECK(losses.parts[0].name == "generator");
    CHECK(losses.mean() == losses.parts[0].report.mean() + 50 * losses.parts[1].report.mean());
    CHECK(losses.parts[1].report.mean() > 0);
    // A loss is a mean over its own rows.
    CHECK(losses.parts[1].report.rows ==
          (variant.all && !variant.energy ? losses.tokens : losses.parts[0].report.rows));
    for (Index i = 0; i < joint.parameters.count(); ++i) {
      const std::string& name = joint.parameters[i].name;
      CAPTURE(name);
      const std::vector<double> all = joint.gradient(i);
      const std::vector<double> generator = alone.gradient(i);
      const std::vector<double> both = once.gradient(i);
      for (std::size_t k = 0; k < all.size(); ++k) {
        CHECK(all[k] ==
              doctest::Approx(generator[k] + 50 * (both[k] - generator[k])).epsilon(1e-9));
      }
      // Nothing of the second loss reaches what is the generator's alone; shared tables get both.
      if (of_generator(name)) {
        CHECK(all == generator);
      } else if (name.find("embeddings.word") != std::string::npos ||
                 name.find("position") != std::string::npos) {
        CHECK(norm(generator) > 0);
        CHECK(all != generator);
      } else if (name.find("token_type") == std::string::npos &&
                 name.find("embeddings.type") == std::string::npos) {
        CHECK(norm(generator) == 0);
      }
    }
  }
}

TEST_CASE("labels follow the samples: a correct one is original") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus);
  Pair<double> pair({});
  // A generator that always says the token 7.
  pair.parameters.value(pair.model.generator_map.bias(model::Role::kDecoder)).at(0, 7) = 1e4;
  pair.loss->prepare();
  const StepLosses losses = pair.loss->evaluate(items);
  const ElectraSelection selection({.selection = {.rate = 0.3, .choice = records::Choice::kExact},
                                    .seed = 11,
                                    .tokens = small_tokens()});
  Index selected = 0;
  Index right = 0;
  for (const StepItem& item : items) {
    const ElectraItem own = selection.select(item.item, item.epoch);
    for (const Index row : own.rows) {
      ++selected;
      if (own.ids[static_cast<std::size_t>(row)] == 7) ++right;
    }
  }
  CHECK(right > 0);
  REQUIRE(losses.shares.size() == 3);
  CHECK(losses.shares[0].name == "fake_rate");
  CHECK(losses.shares[0].of == selected);
  CHECK(losses.shares[0].count == selected - right);
  CHECK(losses.shares[2].of == selected - right);
}

TEST_CASE("Electric's loss is that of noise-contrastive estimation, from what both networks say") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus);
  Pair<double> pair({"electric", 0.25, 0, 50});
  CHECK(pair.model.generator.streams == model::Streams::kTowers);
  CHECK(pair.model.generator.num_hidden_layers == 4);
  CHECK(pair.model.generator.hidden_size == 4);
  pair.loss->prepare();
  const StepLosses losses = pair.loss->evaluate(items);
  Network<double> q(pair.model.generator, pair.model.generator_map, pair.parameters,
                    kernel::Precision::kF64);
  Network<double> energies(pair.model.second, pair.model.second_map, pair.parameters,
                           kernel::Precision::kF64);
  q.prepare();
  energies.prepare();
  ElectraSelectionOptions options{
      .selection = {.rate = 0.3, .choice = records::Choice::kExact, .rounds_up = true},
      .mask = 0,
      .seed = 11,
      .tokens = small_tokens()};
  const ElectraSelection selection(options);
  const auto one_row = [](const std::vector<TokenId>& ids, Index row, TokenId target) {
    Example example;
    example.ids = ids;
    example.rows = {row};
    example.targets = {target};
    return example;
  };
  double cloze = 0, loss = 0;
  Index rows = 0, same = 0;
  for (const StepItem& item : items) {
    const ElectraItem own = selection.select(item.item, item.epoch);
    CHECK(own.ordinary.size() + 2 == own.ids.size());
    const auto ordinary = static_cast<double>(own.ordinary.size());
    CHECK(static_cast<double>(own.rows.size()) == std::ceil(0.3 * ordinary));
    const auto numbers = draw_numbers(item.item, item.epoch, own.ordinary, 11);
    std::vector<TokenId> noised = own.ids;
    std::vector<bool> chosen(own.ids.size(), false);
    std::size_t next = 0;
    for (std::size_t k = 0; k < own.ordinary.size(); ++k) {
      const Index row = own.ordinary[k];
      const auto at = static_cast<std::size_t>(row);
      if (next == own.rows.size() || own.rows[next] != row) continue;
      ++next;
      chosen[at] = true;
      // By inversion, from probabilities token by token.
      double below = 0;
      TokenId token = 0;
      for (; token < kVocabulary; ++token) {
        const Example one = one_row(own.ids, row, token);
        below += std::exp(-q.evaluate({&one, 1}).loss);
        if (below > numbers[k]) break;
      }
      noised[at] = token;
      same += token == own.ids[at] ? 1 : 0;
    }
    for (const Index row : own.ordinary) {
      const auto at = static_cast<std::size_t>(row);
      const Example truth = one_row(own.ids, row, own.ids[at]);
      cloze += q.evaluate({&truth, 1}).loss;
      const Example drawn = one_row(own.ids, row, noised[at]);
      const double log_q = -q.evaluate({&drawn, 1}).loss;
      // log(1 + e^E), the loss of what was not replaced, gives the energy.
      const Example kept = one_row(noised, row, 0);
      const double energy = std::log(std::expm1(energies.evaluate({&kept, 1}).loss));
      const double noise = 0.3 * std::exp(log_q), data = 0.7 * std::exp(-energy);
      loss -= std::log((chosen[at] ? noise : data) / (noise + data));
      ++rows;
    }
  }
  REQUIRE(losses.parts.size() == 2);
  CHECK(losses.parts[0].report.rows == rows);
  CHECK(losses.parts[1].name == "energy");
  CHECK(losses.parts[1].report.rows == rows);
  CHECK(losses.parts[0].report.loss == doctest::Approx(cloze).epsilon(1e-10));
  CHECK(losses.parts[1].report.loss == doctest::Approx(loss).epsilon(1e-9));
  REQUIRE(losses.shares.size() == 1);
  CHECK(losses.shares[0].of - losses.shares[0].count == same);
  for (const auto& [setting, option] :
       {std::pair(Setting{.variant = "electric", .switch_step = 3}, "switch"),
        {Setting{.variant = "electric", .adversarial = true}, "adversarial"}}) {
    CHECK(contains(message_of<UsageError>([&] { Pair<double>{setting}; }), option));
  }
}

TEST_CASE("what a network draws has its probabilities") {
  Pair<double> pair({});
  Network<double> generator(pair.model.generator, pair.model.generator_map, pair.parameters,
                            kernel::Precision::kF64);
  generator.prepare();
  Example example;
  example.ids = {2, 9, 4, 12, 3};
  example.rows = {2};
  example.targets = {0};
  std::vector<double> expected;
  for (TokenId token = 0; token < kVocabulary; ++token) {
    example.targets[0] = token;
    expected.push_back(std::exp(-generator.evaluate({&example, 1}).loss));
  }
  // A grid of uniforms meets each token as often as its probability says, up to one.
  constexpr Index kGrid = 2000;
  const std::vector<Example> many(static_cast<std::size_t>(kGrid), example);
  Sampling sampling;
  for (Index i = 0; i < kGrid; ++i)
    sampling.uniforms.push_back((static_cast<double>(i) + 0.5) / kGrid);
  generator.evaluate(many, {.sampling = &sampling});
  std::vector<double> counts(expected.size(), 0);
  for (const TokenId token : sampling.tokens) ++counts[static_cast<std::size_t>(token)];
  for (std::size_t v = 0; v < expected.size(); ++v)
    CHECK(std::abs(counts[v] - kGrid * expected[v]) <= 1 + 1e-6);
}

TEST_CASE("draws depend on epoch and sequence, not on the batch") {
  const Corpus corpus = small_corpus();
  Pair<double> pair({});
  pair.loss->prepare();
  const std::vector<StepItem> items = items_of(corpus);
  const StepLosses whole = pair.loss->evaluate(items);
  StepLosses parts;
  for (const StepItem& item : items) parts.add(pair.loss->evaluate({&item, 1}));
  CHECK(parts.shares[0].count == whole.shares[0].count);
  CHECK(parts.parts[1].report.loss == doctest::Approx(whole.parts[1].report.loss).epsilon(1e-12));
  const StepLosses other = pair.loss->evaluate(items_of(corpus, 1));
  CHECK(other.parts[1].report.loss != whole.parts[1].report.loss);
}

TEST_CASE("two stages: one network learns, then the other from its weights") {
  const Corpus corpus = small_corpus();
  Pair<float> pair({"electra", 1, 3, 50});
  Trainer trainer(*pair.loss, pair.parameters, corpus, trainer_options());
  const auto values = [&] {
    std::vector<std::vector<float>> all;
    for (Index i = 0; i < pair.parameters.count(); ++i) all.push_back(pair.value(i));
    return all;
  };
  const auto before = values();
  for (int i = 0; i < 3; ++i) {
    const StepReport report = trainer.step();
    REQUIRE(report.loss.parts.size() == 1);
    CHECK(report.loss.mean() == report.loss.parts[0].report.mean());
  }
  const auto first = values();
  for (Index i = 0; i < pair.parameters.count(); ++i) {
    CAPTURE(pair.parameters[i].name);
    const auto at = static_cast<std::size_t>(i);
    CHECK((first[at] == before[at]) == !of_generator(pair.parameters[i].name));
  }
  pair.loss->begin(4);
  Index copied = 0;
  pair.model.generator_map.for_each(
      [&](model::Role role, bool bias, Index layer, Index part, Index from) {
        if (role == model::Role::kHeadTransform || role == model::Role::kHeadNorm ||
            role == model::Role::kDecoder) {
          return;
        }
        const Index to = bias ? pair.model.second_map.bias(role, layer)
                              : pair.model.second_map.weight(role, layer, part);
        CHECK(pair.value(from) == pair.value(to));
        ++copied;
      });
  CHECK(copied > 30);
  const auto started = values();
  const StepReport report = trainer.step();
  REQUIRE(report.loss.parts.size() == 2);
  CHECK(report.loss.mean() == 50 * report.loss.parts[1].report.mean());
  const auto second = values();
  const auto rate = static_cast<float>(report.learning_rate);
  for (Index i = 0; i < pair.parameters.count(); ++i) {
    CAPTURE(pair.parameters[i].name);
    const auto at = static_cast<std::size_t>(i);
    CHECK((second[at] == first[at]) == of_generator(pair.parameters[i].name));
    // Its first update, as Adam counts: no number moves further than the learning rate and decay.
    for (std::size_t k = 0; k < second[at].size(); ++k)
      CHECK(std::abs(second[at][k] - started[at][k]) <= 1.03F * rate);
  }
}

TEST_CASE("steps of both networks go on from values, moments and number alone") {
  const Corpus corpus = small_corpus();
  for (const ElectraVariant& variant : electra_variants()) {
    for (const std::int64_t switch_step : {0, 3}) {
      if (variant.energy && switch_step > 0) continue;
      CAPTURE(variant.name);
      CAPTURE(switch_step);
      const Setting setting{variant.name, 0.5, switch_step, variant.weight};
      Pair<float> whole(setting);
      Trainer trainer(*whole.loss, whole.parameters, corpus, trainer_options());
      Pair<float> later(setting);
      Trainer other(*later.loss, later.parameters, corpus, trainer_options());
      for (int i = 0; i < 8; ++i) {
        if (i == 3) {
          std::ranges::copy(whole.parameters.values(), later.parameters.values().begin());
          std::ranges::copy(trainer.state().first.span(), other.state().first.span().begin());
          std::ranges::copy(trainer.state().second.span(), other.state().second.span().begin());
          other.state().updates = trainer.state().updates;
          other.set_done(3);
        }
        const double loss = trainer.step().loss.mean();
        if (i >= 3) CHECK(other.step().loss.mean() == loss);
      }
      for (Index i = 0; i < whole.parameters.count(); ++i) CHECK(whole.value(i) == later.value(i));
    }
  }
}

TEST_CASE("training lowers the losses of every variant") {
  const Corpus corpus = small_corpus();
  for (const ElectraVariant& variant : electra_variants()) {
    CAPTURE(variant.name);
    Pair<float> pair({variant.name, 0.5, 0, variant.weight});
    TrainerOptions options = trainer_options();
    options.hidden_dropout = 0;
    Trainer trainer(*pair.loss, pair.parameters, corpus, options);
    const StepLosses before = train::evaluate(*pair.loss, corpus, 0);
    for (int i = 0; i < 40; ++i) trainer.step();
    const StepLosses after = train::evaluate(*pair.loss, corpus, 0);
    CHECK(after.parts[0].report.mean() < before.parts[0].report.mean());
    CHECK(after.parts[1].report.mean() < before.parts[1].report.mean());
  }
}

TEST_CASE("the area under the ROC curve counts pairs") {
  RankedScores scores;
  CHECK(std::isnan(scores.area()));
  const RandomStream stream(3, "scores");
  for (std::uint64_t k = 0; k < 60; ++k) {
    double x = 0;
    stream.normal(k, 1, &x);
    // Some are equal.
    (k % 3 == 0 ? scores.positive : scores.negative).push_back(std::round(4 * x) / 4);
  }
  double pairs = 0;
  for (const double a : scores.positive) {
    for (const double b : scores.negative) pairs += a > b ? 1 : a == b ? 0.5 : 0;
  }
  CHECK(scores.area() == pairs / 20 / 40);
  scores.negative.push_back(std::nan(""));
  CHECK(std::isnan(scores.area()));
  scores.positive = {1, 2};
  scores.negative = {-INFINITY, 0};
  CHECK(scores.area() == 1);
}

TEST_CASE("an evaluation ranks a discriminator's logits") {
  const Corpus corpus = small_corpus();
  const Pair<double> pair({"electra", 0.5});
  pair.loss->prepare();
  std::vector<StepItem> items;
  for (Index i = 0; i < corpus.size(); ++i) items.push_back({corpus.item(i), 0});
  const StepLosses losses = pair.loss->evaluate(items);
  const LossReport& report = losses.parts.back().report;
  const RankedScores& found = losses.detections;
  CHECK(std::ssize(found.positive) + std::ssize(found.negative) == report.rows);
  const auto above = [](const std::vector<double>& scores) {
    return std::ranges::count_if(scores, [](double z) { return z > 0; });
  };
  CHECK(above(found.positive) == report.true_positives);
  CHECK(above(found.positive) + above(found.negative) == report.predicted_replaced);
  CHECK(found.area() > 0);
  CHECK(found.area() < 1);
  double loss = 0;
  for (const double z : found.positive) loss += std::log1p(std::exp(-z));
  for (const double z : found.negative) loss += std::log1p(std::exp(z));
  CHECK(std::abs(loss - report.loss) < 1e-9);
}

TEST_CASE("tables that networks have together are chosen") {
  CHECK(tables_apart(SharedTables::kAll).empty());
  CHECK(tables_apart(SharedTables::kWords) ==
        std::vector<model::Role>{model::Role::kPositionTable, model::Role::kSegmentTable});
  CHECK(tables_apart(SharedTables::kNone).size() == 3);
}

TEST_CASE("a generator narrower than its tables has a projection, and sizes are refused") {
  const Pair<double> pair({"electra", 0.25});
  CHECK(pair.model.generator.hidden_size == 4);
  CHECK(pair.model.generator.embedding_size == 16);
  CHECK(pair.model.generator_map.weight(model::Role::kEmbeddingProjection) != ParameterMap::kNone);
  CHECK(pair.model.generator_map.weight(model::Role::kWordTable) ==
        pair.model.second_map.weight(model::Role::kWordTable));
  CHECK(contains(message_of<UsageError>([] { Pair<double>({"electra", 1.5}); }), "generator_size"));
}

}  // namespace masque::test
