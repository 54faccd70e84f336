// A synthetic task for length generalisation.
#include "task/task.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "length/subject.hpp"
#include "model/checkpoint/save.hpp"
#include "train/data/record_example.hpp"
#include "train/network/trained_positions.hpp"
#include "train/run/mask_check.hpp"
#include "train/run/residual_start.hpp"

namespace masque::length {

namespace {

// An epoch of training: a number that only keys the random numbers.
constexpr Index kEpochItems = 1024;

train::Example example_of(const task::Task& task, Index length, const RandomStream& stream) {
  const task::TaskExample made = task.example(length, stream);
  train::Example out;
  out.ids = made.ids;
  for (std::size_t i = 0; i < made.targets.size(); ++i) {
    if (made.targets[i] == task::kNoTarget) continue;
    out.rows.push_back(static_cast<Index>(i));
    out.targets.push_back(made.targets[i]);
  }
  return out;
}

/// A task as an objective: items of the corpus are numbers alone.
class TaskObjective final : public train::Objective {
 public:
  TaskObjective(const task::Task& task, const std::vector<Index>& lengths,
                const train::ObjectiveOptions& options)
      : train::Objective(options), task_(task), lengths_(lengths) {}

  void adapt(model::Design& design) const override {
    train::adapt_design(
        {.objective = task_.name(),
         .mask = task_.causal() ? model::DefaultMask::kCausal : model::DefaultMask::kFull,
         .head = task_.causal() ? model::HeadKind::kCausal : model::HeadKind::kMasked,
         .allow_leak = options().allow_leak,
         .vocab_size = static_cast<TokenId>(task_.vocab_size())},
        design);
  }
  std::optional<Index> target_offset(Index /*size*/) const override {
    return task_.causal() ? std::optional<Index>(1) : std::nullopt;
  }

 protected:
  train::Example make(records::Record& record) const override {
    const std::uint64_t number = record.epoch * kEpochItems + record.number;
    Draw draw(options().seed, "length of task", number);
    const auto at = static_cast<std::size_t>(draw.below(std::ssize(lengths_)));
    return example_of(task_, lengths_[at], RandomStream(options().seed, "task", number));
  }

 private:
  const task::Task& task_;
  const std::vector<Index>& lengths_;
};

class TaskLearner final : public Learner {
 public:
  TaskLearner(train::RunOptions options, const task::Task& task, const std::vector<Index>& lengths,
              Index longest)
      : task_(task),
        training_{options.initializer_range, options.trainer.hidden_dropout,
                  options.trainer.attention_dropout} {
    train::ObjectiveOptions requested;
    requested.seed = options.trainer.seed;
    requested.allow_leak = options.requested.allow_leak;
    objective_ = std::make_unique<TaskObjective>(task, lengths, requested);
    const TokenId nothing = 0;
    for (Index i = 0; i < kEpochItems; ++i) corpus_.add({&nothing, 1});
    train::DesignRecipe& recipe = options.design;
    recipe.vocab_size = task.vocab_size();
    if (recipe.max_position_embeddings == 0) recipe.max_position_embeddings = longest;
    model::Design design = design_of(recipe);
    objective_->adapt(design);
    if (!options.mask.empty()) {
      train::set_given_masks(options.mask, design);
      train::check_parts_obey(design, field("mask"), requested.allow_leak);
      if (!requested.allow_leak && task.causal())
        train::refuse_read_target(task.name(), design, *objective_, corpus_);
    }
    const model::ModelPlan plan = model::saved_design(design).plan;
    map_ = add_model(plan, model::head_like(plan, design.head), "", train::ParameterMap(),
                     parameters_);
    initialize_parameters(design, map_,
                          {.seed = options.trainer.seed,
                           .initializer_range = options.initializer_range,
                           .residual_gain = residual_gain(recipe)},
                          parameters_);
    network_ =
        std::make_unique<train::Network<float>>(design, map_, parameters_, options.precision);
    network_->chunk_rows = options.chunk_rows;
    start_residuals(*objective_, corpus_, options.trainer.batch_size, map_, *network_, parameters_);
    loss_ = std::make_unique<train::ObjectiveLoss>(*network_, *objective_);
    trainer_ = std::make_unique<train::Trainer>(*loss_, parameters_, corpus_, options.trainer);
  }
  train::Trainer& trainer() override { return *trainer_; }
  train::Network<float>& network() override { return *network_; }
  train::Parameters<float>& parameters() override { return parameters_; }
  std::unique_ptr<train::Trainer> finetuner(Index length,
                                            const train::TrainerOptions& options) override {
    Finer& finer = finer_.emplace_back();
    finer.lengths = {length};
    train::ObjectiveOptions requested;
    requested.seed = options.seed;
    finer.objective = std::make_unique<TaskObjective>(task_, finer.lengths, requested);
    finer.loss = std::make_unique<train::ObjectiveLoss>(*network_, *finer.objective);
    return std::make_unique<train::Trainer>(*finer.loss, parameters_, corpus_, options);
  }
  void save(const std::string& folder, Index positions) const override {
    model::SaveOptions options;
    options.training = training_;
    options.write.existing = Existing::kReplace;
    model::Design design = network_->design();
    model::ModelWeights<float> weights = weights_of(design, map_, parameters_);
    train::set_trained_positions(positions, design, weights);
    model::save_model(folder, design, weights, options);
  }

 private:
  /// What a trainer at another length refers to.
  struct Finer {
    std::vector<Index> lengths;
    std::unique_ptr<const train::Objective> objective;
    std::unique_ptr<train::ObjectiveLoss> loss;
  };

  const task::Task& task_;
  model::TrainingConfig training_;
  std::unique_ptr<const train::Objective> objective_;
  train::Corpus corpus_;
  mutable train::Parameters<float> parameters_;  // views for saving are not const
  train::ParameterMap map_;
  std::unique_ptr<train::Network<float>> network_;
  std::unique_ptr<train::ObjectiveLoss> loss_;
  std::unique_ptr<train::Trainer> trainer_;
  std::deque<Finer> finer_;
};

class OneTask final : public LengthSubject {
 public:
  explicit OneTask(const TaskSubject& request)
      : request_(request), task_(task::parse_task(request.task)) {
    longest_trained_ = longest_of(request_.train_lengths);
    longest_ = std::max(longest_trained_, longest_of(request_.finetune_lengths));
    for (const Index length : request.eval_lengths) {
      const RandomStream stream(~request.seed, fmt::format("scored {}", length));
      std::vector<train::Example>& all = examples_[length];
      for (Index i = 0; i < request.eval_examples; ++i)
        all.push_back(example_of(*task_, length, stream.for_item(static_cast<std::uint64_t>(i))));
      longest_scored_ = std::max(longest_scored_, task_->tokens(length));
    }
  }

  std::unique_ptr<Learner> learner(const train::RunOptions& options) const override {
    // A table that nothing extends needs positions for fine-tuning, too.
    const Index positions = positions_end(options.design) ? longest_ : longest_trained_;
    return std::make_unique<TaskLearner>(options, *task_, request_.train_lengths, positions);
  }
  const std::vector<train::Example>& examples(Index length) const override {
    return examples_.at(length);
  }
  double chance(Index length) const override { return task_->chance(length); }
  bool whole() const override { return true; }
  Index tokens(Index length) const override { return task_->tokens(length); }
  Index longest_trained() const override { return longest_trained_; }
  Index longest_scored() const override { return longest_scored_; }
  Settings settings() const override {
    return {{"task", request_.task},
            {"eval_examples", fmt::format("{}", request_.eval_examples)},
            {"eval_seed", fmt::format("{}", request_.seed)}};
  }

 private:
  /// Tokens; throws for a length that the task has not.
  Index longest_of(const std::vector<Index>& lengths) const {
    Index longest = 0;
    for (const Index length : lengths) {
      task_->example(length, RandomStream(request_.seed, "task"));
      longest = std::max(longest, task_->tokens(length));
    }
    return longest;
  }

  TaskSubject request_;
  std::unique_ptr<const task::Task> task_;
  std::map<Index, std::vector<train::Example>> examples_;
  Index longest_trained_ = 0, longest_scored_ = 0;
  Index longest_ = 0;  ///< of all sequences to learn from
};

}  // namespace

std::unique_ptr<const LengthSubject> make_task_subject(const TaskSubject& request) {
  return std::make_unique<const OneTask>(request);
}

}  // namespace masque::length
