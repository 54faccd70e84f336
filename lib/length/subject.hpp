// What models of a length run learn and are scored on: a text, or a synthetic task.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/run/run.hpp"

namespace masque::length {

/// Whether a model of `design` has no position beyond those of its training: it has a table of
/// `learned` or late positions, which nothing extends. Later rows of the table are random.
inline bool positions_end(const train::DesignRecipe& design) {
  return design.position == "learned" || design.late_positions > 0;
}

/// How many positions a model of `design` has that was trained with `trained` of them:
/// PositionScheme::position_count; `trained` itself where positions_end(). 0: no limit,
/// as for a mixer, whose weights are made for the longest sequence that is scored. Throws
/// UsageError for positions that do not exist.
Index position_count(const train::DesignRecipe& design, Index trained);

/// A model at its start, and its trainer.
class Learner {
 public:
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;
  /// The trainer on the subject's training data. Lives as long as the learner.
  virtual train::Trainer& trainer() = 0;
  /// The network that is trained. Lives as long as the learner.
  virtual train::Network<float>& network() = 0;
  /// The network's values. Lives as long as the learner.
  virtual train::Parameters<float>& parameters() = 0;
  /// Makes another trainer of the same values with `options` and a fresh optimizer, on sequences of
  /// `length`, one of the subject's fine-tuning lengths. The learner must outlive it.
  virtual std::unique_ptr<train::Trainer> finetuner(Index length,
                                                    const train::TrainerOptions& options) = 0;
  /// Writes the model as `folder`, which all tools read, over an older one of the same name.
  /// `positions`, the tokens of the longest sequence of its training, is what they will take for it
  /// (set_trained_positions).
  virtual void save(const std::string& folder, Index positions) const = 0;
};

/// What is learnt, and what is scored. Immutable; for one thread.
class LengthSubject {
 public:
  /// Names and values, in a fixed order.
  using Settings = std::vector<std::pair<std::string, std::string>>;

  LengthSubject() = default;
  LengthSubject(const LengthSubject&) = delete;
  LengthSubject& operator=(const LengthSubject&) = delete;
  virtual ~LengthSubject() = default;

  /// Makes a new model with the design and training of `options`. The subject must outlive it.
  /// Throws UsageError for a design that does not fit.
  virtual std::unique_ptr<Learner> learner(const train::RunOptions& options) const = 0;
  /// What is scored at `length`, one of the scored lengths: the same for all designs and seeds.
  /// Lives as long as the subject.
  virtual const std::vector<train::Example>& examples(Index length) const = 0;
  /// Accuracy, from 0 to 1, of always predicting the most frequent target at `length`: counted in
  /// examples(length), for tasks task::Task::chance.
  virtual double chance(Index length) const;
  /// Whether it is also counted which examples are right as a whole: for tasks.
  virtual bool whole() const = 0;
  /// Number of tokens of a sequence of `length`: the length itself for texts, Task::tokens for
  /// tasks.
  virtual Index tokens(Index length) const = 0;
  /// Number of tokens of the longest sequence in training, without fine-tuning.
  virtual Index longest_trained() const = 0;
  /// Number of tokens of the longest sequence that is scored.
  virtual Index longest_scored() const = 0;
  /// Settings that affect the results besides a model's options.
  virtual Settings settings() const = 0;
  /// For people: what is odd about the tokenizer, and how much of the text is scored if not all.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// The request of make_text_subject(). Lengths are tokens of a sequence, those of the template
/// included.
struct TextSubject {
  std::string text;                     ///< path of the text to train on
  std::string eval_text;                ///< path of the text that is scored
  std::string tokenizer;                ///< as text::Tokenizer::open takes it
  std::string objective = "mlm";        ///< mlm, tta or clm
  train::ObjectiveOptions requested;    ///< the rate
  std::vector<Index> train_lengths;     ///< of training
  std::vector<Index> eval_lengths;      ///< that are scored; at least one
  std::vector<Index> finetune_lengths;  ///< of fine-tuning
  Index eval_tokens = 0;                ///< the first ones of the text are scored; 0: all
  std::uint64_t seed = 0;               ///< of the tokens that are hidden where it is scored
  int threads = 0;                      ///< CorpusOptions::threads
};

/// Makes a subject of blocks of the texts in `request`. Training uses every sequence of each length
/// once per epoch. The scored text becomes one stream of tokens with targets that are drawn once;
/// it is then cut into blocks of each length (LengthStream with policy kChunk), so that the same
/// tokens are targets, hidden in the same way. Tokens without context at some length (causal models
/// without a template) are targets at no length. Throws InputError for texts that are shorter than
/// a block, UsageError for other objectives.
std::unique_ptr<const LengthSubject> make_text_subject(const TextSubject& request);

/// The request of make_task_subject(). Lengths are as the task counts them: see task::Task.
struct TaskSubject {
  std::string task;                     ///< as task::parse_task takes it
  std::vector<Index> train_lengths;     ///< of training
  std::vector<Index> eval_lengths;      ///< that are scored
  std::vector<Index> finetune_lengths;  ///< of fine-tuning
  Index eval_examples = 256;            ///< of each length
  std::uint64_t seed = 0;               ///< of the scored ones
};

/// Makes a subject of the synthetic task in `request`: every example of training is new, each of a
/// length drawn among `train_lengths`. The model is causal if the task requires it. Throws
/// UsageError for an unknown task and for lengths that the task does not have.
std::unique_ptr<const LengthSubject> make_task_subject(const TaskSubject& request);

}  // namespace masque::length
