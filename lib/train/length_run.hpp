// Length generalisation: models of several designs and seeds, trained at some lengths and scored at
// others.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/bootstrap.hpp"
#include "train/run.hpp"

namespace masque::train {

/// A model at its start, and its trainer.
class Learner {
 public:
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;
  virtual Trainer& trainer() = 0;
  virtual Network<float>& network() = 0;
  virtual Parameters<float>& parameters() = 0;
  /// Another trainer of the same values, on sequences of one of the subject's fine-tuning lengths.
  virtual std::unique_ptr<Trainer> finetuner(Index length, const TrainerOptions& options) = 0;
  /// The model as a folder that all tools read, over an older one of the same name; `places`, the
  /// longest sequence of its training, is what they will take for it (set_trained_places).
  virtual void save(const std::string& folder, Index places) const = 0;
};

/// What is learnt, and what is scored. Immutable; for one thread.
class LengthSubject {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  LengthSubject() = default;
  LengthSubject(const LengthSubject&) = delete;
  LengthSubject& operator=(const LengthSubject&) = delete;
  virtual ~LengthSubject() = default;

  /// A new model. Throws UsageError for a design that does not fit.
  virtual std::unique_ptr<Learner> learner(const RunOptions& options) const = 0;
  /// What is scored at a length: the same for all designs and seeds.
  virtual const std::vector<Example>& examples(Index length) const = 0;
  /// Accuracy of always saying the token that is right most often; as `examples` have it.
  virtual double chance(Index length) const;
  /// Whether an example is right only as a whole, too: tasks.
  virtual bool whole() const = 0;
  /// Tokens of a sequence of a length.
  virtual Index tokens(Index length) const = 0;
  /// Tokens of the longest sequence that training has, fine-tuning left out, and that is scored.
  virtual Index longest_trained() const = 0;
  virtual Index longest_scored() const = 0;
  /// What decides the bytes besides a model's options.
  virtual Settings settings() const = 0;
};

struct TextSubject {
  std::string text, eval_text, tokenizer;
  std::string objective = "mlm";  ///< mlm, tta or clm
  ObjectiveOptions asked;         ///< the rate
  std::vector<Index> train_lengths, eval_lengths, finetune_lengths;
  Index eval_tokens = 0;   ///< the first ones of the text are scored; 0: all
  std::uint64_t seed = 0;  ///< of the tokens that are hidden where it is scored
  int threads = 0;
};

/// Blocks of a text. Training takes every sequence of each length once an epoch. Of the scored text
/// one stream of tokens is made, its targets are drawn once, and then it is cut into blocks of each
/// length: the same tokens are targets, hidden in the same way. Tokens that have nothing in front
/// of them at some length (causal models without a template) are no targets at any.
/// Throws InputError for texts that are shorter than a block, UsageError for other objectives.
std::unique_ptr<const LengthSubject> make_text_subject(const TextSubject& request);

struct TaskSubject {
  std::string task;  ///< as task::parse_task takes it
  std::vector<Index> train_lengths, eval_lengths, finetune_lengths;
  Index eval_examples = 256;  ///< of each length
  std::uint64_t seed = 0;     ///< of the scored ones
};

/// A synthetic task: every example of training is new, each of a length drawn among
/// `train_lengths`. A model reads causally where the task says so. Throws UsageError for no task
/// and for lengths that it has not.
std::unique_ptr<const LengthSubject> make_task_subject(const TaskSubject& request);

/// One cell of the result: a design with a seed, scored at a length.
struct LengthRow {
  std::size_t arm = 0;
  std::uint64_t seed = 0;
  Index window = 0;  ///< keys at this distance or more are hidden; 0: none are
  Index length = 0;
  bool finetuned = false;  ///< at this length, behind its training
  double loss = 0;         ///< mean, nats a target
  double accuracy = 0;
  double whole = 0;  ///< share of sequences whose targets are all right; NaN for texts
  Index targets = 0;

  bool operator==(const LengthRow&) const = default;
};

/// A short training at another length, which begins with the trained model each time, and with an
/// optimizer that remembers nothing.
struct Finetuning {
  std::vector<Index> lengths;  ///< among those that are scored
  Schedule schedule;
};

struct LengthRequest {
  const LengthSubject* subject = nullptr;  ///< must stay
  std::size_t arms = 0;
  std::vector<std::uint64_t> seeds;
  std::vector<Index> eval_lengths;
  std::vector<Index> windows{0};  ///< of scoring; training sees none of them
  /// A model that is fine-tuned at a length is scored there alone. Where a table of learned places
  /// ends with the lengths of fine-tuning, the trained model is scored up to its own alone.
  std::optional<Finetuning> finetuning;
  /// Only this one of the arms × seeds, seeds varying fastest; not with a budget.
  std::optional<std::size_t> only;
  /// Models stay in folder/models; a cell whose model is not there is trained again.
  bool keep_models = false;
  /// The model of an arm: all of it is in `settings`.
  std::function<RunOptions(std::size_t arm, std::int64_t steps, std::uint64_t seed)> options;
  /// Updates of every arm; or as many as fit into `budget_seconds` with all arms and seeds.
  std::optional<std::int64_t> steps;
  double budget_seconds = 0;
  double spent_seconds = 0;  ///< of the budget, before the call
  std::string folder;
  /// A line for the user.
  std::function<void(const std::string&)> note;
};

struct LengthResult {
  std::int64_t steps = 0;
  std::vector<LengthRow> rows;                    ///< by arm, seed, fine-tuning, window, length
  std::vector<LengthSubject::Settings> settings;  ///< one an arm × seed, in that order
};

/// Trains and scores all arms and seeds. What is done is kept in `folder` (made if there is none),
/// a file for each arm and seed, and taken from there when all settings are the same: a run that
/// was interrupted goes on, inside of a cell from the last checkpoint, one a minute. Results are
/// functions of the settings alone, for any number of threads; with a budget of the steps, too,
/// which are measured once and kept. Throws UsageError for arms whose names are wrong before any is
/// trained; InputError for a folder of something else, a loss that is not finite; Interrupted.
LengthResult run_lengths(const LengthRequest& request);

/// Seeds of a cell put together.
struct LengthSummary {
  std::size_t arm = 0;
  bool finetuned = false;
  Index window = 0;
  Index length = 0;
  Index targets = 0;
  probe::Summary accuracy, loss, whole;
};

/// By arm, fine-tuning, window, length. Rows as run_lengths gives them.
std::vector<LengthSummary> summarise_lengths(const std::vector<LengthRow>& rows);

}  // namespace masque::train
