// Ranks: threads in place of processes.
#include "train/loss/ranks.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "model/checkpoint/save.hpp"
#include "support/message.hpp"
#include "train/loss/correction_loss.hpp"
#include "train/loss/electra_loss.hpp"
#include "train/run/trainer.hpp"
#include "train_case.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

constexpr Index kVocabulary = 40;
constexpr Index kSequences = 14;
constexpr int kSteps = 4;

/// What several threads add up together.
struct Table {
  explicit Table(int ranks) : count(ranks), barrier(ranks), doubles(map()), floats(map()) {}
  std::size_t map() const { return static_cast<std::size_t>(count); }

  int count;
  std::barrier<> barrier;
  std::vector<std::span<double>> doubles;
  std::vector<std::span<float>> floats;
};

class ThreadRank final : public Ranks {
 public:
  ThreadRank(Table& table, int rank) : table_(table), rank_(rank) {}
  int count() const override { return table_.count; }
  int rank() const override { return rank_; }
  void sum(std::span<float> numbers) override { add(numbers, table_.floats); }
  void sum(std::span<double> numbers) override { add(numbers, table_.doubles); }

 private:
  template <class T>
  void add(std::span<T> numbers, std::vector<std::span<T>>& all) {
    all[static_cast<std::size_t>(rank_)] = numbers;
    table_.barrier.arrive_and_wait();
    std::vector<T> sum(numbers.size());
    for (const std::span<T>& one : all) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    table_.barrier.arrive_and_wait();
    std::ranges::copy(sum, numbers.begin());
    table_.barrier.arrive_and_wait();
  }

  Table& table_;
  int rank_;
};

Corpus small_corpus() {
  Corpus corpus;
  for (Index s = 0; s < kSequences; ++s) {
    std::vector<TokenId> ids{2};
    for (Index i = 0; i < 6 + s % 5; ++i)
      ids.push_back(static_cast<TokenId>(5 + (s * 7 + i * 3) % 35));
    ids.push_back(3);
    corpus.add(ids);
  }
  return corpus;
}

/// The same with labels, of which some are other tokens.
Corpus small_pairs() {
  const Corpus right = small_corpus();
  Corpus corpus;
  for (Index i = 0; i < right.size(); ++i) {
    CorpusItem item = right.item(i);
    std::vector<std::int32_t> labels(item.ids.begin(), item.ids.end());
    labels.front() = labels.back() = records::kNoLabel;
    labels[2] = 9;
    item.labels = labels;
    corpus.add(item);
  }
  corpus.set_labels(LabelKind::kTokens);
  return corpus;
}

ObjectiveOptions requested() {
  ObjectiveOptions options = objective_options();
  options.tokens.size = kVocabulary;
  options.tokens.begins_word.assign(static_cast<std::size_t>(kVocabulary), 1);
  options.mlm.selection.rate = 0.3;
  return options;
}

DesignRecipe recipe(Index layers = 1) {
  DesignRecipe recipe;
  recipe.vocab_size = kVocabulary;
  recipe.num_hidden_layers = layers;
  recipe.hidden_size = 16;
  recipe.num_attention_heads = 2;
  recipe.max_position_embeddings = 20;
  return recipe;
}

/// ELECTRA with a generator that is rewarded.
constexpr std::string_view kAdversarial = "adversarial";

/// A model with its loss: of an objective, of an ablation of ELECTRA, kAdversarial or kCorrect.
struct Model {
  explicit Model(const std::string& name, Index width = 16) {
    DesignRecipe sizes = recipe(name == "two-tower" ? 2 : 1);
    sizes.hidden_size = width;
    model::Design design = design_of(sizes);
    design.type_vocab_size = 2;
    const StartOptions start{.seed = 3, .initializer_range = 0.2};
    const bool adversarial = name == kAdversarial;
    if (name == kCorrect) {
      adapt_correction(requested(), detector_sizes(design, recipe(), 0.5, 1), design);
      const model::ModelPlan plan = model::saved_design(design).plan;
      const ParameterMap map =
          add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
      initialize_parameters(design, map, start, parameters);
      loss = std::make_unique<CorrectionLoss<float>>(design, map, parameters,
                                                     kernel::Precision::kF32, 0.6);
      return;
    }
    if (!adversarial && find_electra(name) == nullptr) {
      objective = find_objective(name).make(requested());
      objective->adapt(design);
      const model::ModelPlan plan = model::saved_design(design).plan;
      const ParameterMap map =
          add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
      initialize_parameters(design, map, start, parameters);
      network = std::make_unique<Network<float>>(design, map, parameters, kernel::Precision::kF32);
      loss = std::make_unique<ObjectiveLoss>(*network, *objective);
      return;
    }
    pair.variant = find_electra(adversarial ? "electra" : name);
    pair.adversarial = adversarial;
    pair.second = design;
    adapt_electra(*pair.variant, requested(), pair.second);
    pair.generator = generator_design(*pair.variant, recipe(), 0.5, requested(), pair.second);
    add_electra(pair, true, parameters);
    initialize_parameters(pair.generator, pair.generator_map, start, parameters);
    initialize_parameters(pair.second, pair.second_map, start, parameters);
    ElectraLossOptions options;
    options.selection.selection.rate = 0.3;
    options.selection.tokens = requested().tokens;
    if (adversarial) options.weight = 1;  // the generator's share of the gradient must show
    loss = std::make_unique<ElectraLoss<float>>(options, pair, parameters);
  }

  Parameters<float> parameters;
  std::unique_ptr<const Objective> objective;
  std::unique_ptr<Network<float>> network;
  ElectraModel pair;
  std::unique_ptr<StepLoss> loss;
};

struct Result {
  std::vector<StepReport> steps;
  std::vector<float> values, first, second;
  Index moments = 0;  ///< that the rank keeps
};

struct How {
  SumPrecision precision = SumPrecision::kF32;
  bool shards = false;
  Index width = 16;
};

std::vector<Result> train(const std::string& name, int ranks, const How& how = {}) {
  const Corpus corpus = name == kCorrect ? small_pairs() : small_corpus();
  Table table(ranks);
  std::vector<Result> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      kernel::set_threads(1);
      ThreadRank rank(table, r);
      Model model(name, how.width);
      TrainerOptions options;
      options.schedule.steps = kSteps;
      options.gradient_precision = how.precision;
      options.shard_optimizer = how.shards;
      options.batch_size = 7;
      Trainer trainer(*model.loss, model.parameters, corpus, options, rank);
      Result& result = results[static_cast<std::size_t>(r)];
      result.steps.reserve(kSteps);
      for (int s = 0; s < kSteps; ++s) result.steps.push_back(trainer.step());
      const std::span<const float> values = model.parameters.values();
      result.values.assign(values.begin(), values.end());
      result.moments = trainer.state().second.columns();
      trainer.visit_moments([&](bool second, std::span<const float> numbers) {
        (second ? result.second : result.first).assign(numbers.begin(), numbers.end());
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace

TEST_CASE("several ranks learn what one learns, up to rounding, and all the same") {
  for (const std::string name : {"mlm", "clm", "two-tower", "electra", "electric", "replace-mlm",
                                 "adversarial", "correct"}) {
    const Result one = train(name, 1).front();
    for (const int ranks : {2, 3, 7}) {
      CAPTURE(name);
      CAPTURE(ranks);
      const std::vector<Result> all = train(name, ranks);
      const std::vector<Result> again = train(name, ranks);
      for (std::size_t r = 0; r < all.size(); ++r) {
        CHECK(all[r].values == all[0].values);
        CHECK(again[r].values == all[r].values);
        for (std::size_t s = 0; s < all[r].steps.size(); ++s) {
          const StepReport &found = all[r].steps[s], &expected = one.steps[s];
          CHECK(found.loss.mean() == doctest::Approx(expected.loss.mean()).epsilon(1e-5));
          CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(1e-4));
          CHECK(found.tokens == expected.tokens);
          CHECK(found.epoch == expected.epoch);
          CHECK(found.loss.rows() == expected.loss.rows());
        }
      }
      CHECK(all[0].values != one.values);  // or the ranks did not share the work
    }
  }
}

TEST_CASE("an optimizer in parts learns the same bits") {
  constexpr Index kWide = 128;  // some parts for each rank
  for (const std::string name : {"clm", "electra"}) {
    for (const SumPrecision precision : {SumPrecision::kF32, SumPrecision::kBf16}) {
      const std::vector<Result> whole = train(name, 3, {precision, false, kWide});
      const std::vector<Result> parts = train(name, 3, {precision, true, kWide});
      Index moments = 0;
      for (std::size_t r = 0; r < parts.size(); ++r) {
        CAPTURE(name);
        CAPTURE(r);
        CHECK(parts[r].values == whole[0].values);
        CHECK(parts[r].first == whole[0].first);
        CHECK(parts[r].second == whole[0].second);
        CHECK(parts[r].steps.back().gradient_norm == whole[0].steps.back().gradient_norm);
        CHECK(parts[r].moments > 0);
        CHECK(parts[r].moments < whole[r].moments / 2);
        moments += parts[r].moments;
      }
      CHECK(moments == whole[0].moments);
    }
  }
  const std::vector<Result> alone = train("clm", 1, {SumPrecision::kF32, true});
  CHECK(alone[0].values == train("clm", 1)[0].values);
}

TEST_CASE("gradients that travel as bfloat16") {
  const Result one = train("clm", 1).front();
  const std::vector<Result> all = train("clm", 3, {SumPrecision::kBf16});
  const std::vector<Result> exact = train("clm", 3);
  CHECK(all[0].values != exact[0].values);
  for (const Result& result : all) {
    CHECK(result.values == all[0].values);
    for (std::size_t s = 0; s < kSteps; ++s) {
      CHECK(result.steps[s].loss.mean() == doctest::Approx(one.steps[s].loss.mean()).epsilon(1e-3));
      CHECK(result.steps[s].gradient_norm ==
            doctest::Approx(one.steps[s].gradient_norm).epsilon(0.01));
    }
  }
  // Of one process nothing travels.
  CHECK(train("clm", 1, {SumPrecision::kBf16})[0].values == one.values);
}

TEST_CASE("what ranks agree on, and what they must") {
  constexpr int kRanks = 3;
  Table table(kRanks);
  std::vector<std::string> messages(kRanks);
  std::vector<std::thread> threads;
  std::vector<double> first(kRanks), weight(kRanks);
  std::vector<Index> before(kRanks), share(kRanks);
  std::vector<int> some(kRanks), none(kRanks);
  threads.reserve(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      ThreadRank rank(table, r);
      const auto at = static_cast<std::size_t>(r);
      first[at] = of_first(rank, 5 + r);
      some[at] = any(rank, r == 1) ? 1 : 0;
      none[at] = any(rank, false) ? 1 : 0;
      const RankTotals found = totals(rank, 0.5, 10 * (r + 1));
      weight[at] = found.weight;
      before[at] = found.rows_before;
      const RankShare own = share_of(rank, 8);
      share[at] = own.end - own.begin;
      check_alike(rank, "text", "the same");
      messages[at] = message_of<InputError>([&] { check_alike(rank, "text", r == 1 ? "a" : "b"); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(first == std::vector<double>{5, 5, 5});
  CHECK(some == std::vector<int>{1, 1, 1});
  CHECK(none == std::vector<int>{0, 0, 0});
  CHECK(weight == std::vector<double>{1.5, 1.5, 1.5});
  CHECK(before == std::vector<Index>{0, 10, 30});
  CHECK(share == std::vector<Index>{2, 3, 3});
  for (const std::string& message : messages)
    CHECK(message == "text: not the same for all processes; expected the same files everywhere");
}

TEST_CASE("a batch has a sequence for every rank") {
  const Corpus corpus = small_corpus();
  Table table(3);
  ThreadRank rank(table, 1);
  Model model("mlm");
  TrainerOptions options;
  options.batch_size = 2;
  CHECK(message_of<UsageError>([&] {
          Trainer(*model.loss, model.parameters, corpus, options, rank);
        }) == "batch_size 2: expected at least one sequence for each of 3 processes");
  options.batch_size = 7;
  options.shard_optimizer = true;
  options.optimizer = Optimizer::kLamb;
  CHECK(message_of<UsageError>(
            [&] { Trainer(*model.loss, model.parameters, corpus, options, rank); }) ==
        "shard_optimizer cannot be combined with optimizer lamb, whose step goes by whole "
        "tensors; use adamw");
}

TEST_CASE("parts of what is summed") {
  Table table(3);
  const ThreadRank rank(table, 1);
  const Index bucket = bucket_size(rank);
  CHECK(bucket % (3 * kPartUnit) == 0);
  for (const Index size : {Index{1}, kPartUnit, 2 * kPartUnit + 1, 5 * kPartUnit, bucket}) {
    CAPTURE(size);
    Index end = 0;
    for (int r = 0; r < 3; ++r) {
      const RankShare part = part_of(rank, r, size);
      CHECK(part.begin == std::min(size, end));
      CHECK((part.begin % kPartUnit == 0 || part.begin == size));
      end = part.end;
    }
    CHECK(end == size);
  }
}

}  // namespace masque::test
