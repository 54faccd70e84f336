// What models of a length run learn and are scored on: a text, or a synthetic task.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/run/run.hpp"

namespace masque::length {

/// A model at its start, and its trainer.
class Learner {
 public:
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;
  virtual train::Trainer& trainer() = 0;
  virtual train::Network<float>& network() = 0;
  virtual train::Parameters<float>& parameters() = 0;
  /// Another trainer of the same values, on sequences of one of the subject's fine-tuning lengths.
  virtual std::unique_ptr<train::Trainer> finetuner(Index length,
                                                    const train::TrainerOptions& options) = 0;
  /// The model as a folder that all tools read, over an older one of the same name; `positions`,
  /// the longest sequence of its training, is what they will take for it (set_trained_positions).
  virtual void save(const std::string& folder, Index positions) const = 0;
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
  virtual std::unique_ptr<Learner> learner(const train::RunOptions& options) const = 0;
  /// What is scored at a length: the same for all designs and seeds.
  virtual const std::vector<train::Example>& examples(Index length) const = 0;
  /// Accuracy of always predicting the most frequent target of `examples`.
  virtual double chance(Index length) const;
  /// Whether it is also counted which examples are right as a whole: for tasks.
  virtual bool whole() const = 0;
  /// Tokens of a sequence of a length.
  virtual Index tokens(Index length) const = 0;
  /// Number of tokens of the longest sequence in training (without fine-tuning), and in scoring.
  virtual Index longest_trained() const = 0;
  virtual Index longest_scored() const = 0;
  /// Settings that affect the results besides a model's options.
  virtual Settings settings() const = 0;
};

struct TextSubject {
  std::string text, eval_text, tokenizer;
  std::string objective = "mlm";      ///< mlm, tta or clm
  train::ObjectiveOptions requested;  ///< the rate
  std::vector<Index> train_lengths, eval_lengths, finetune_lengths;
  Index eval_tokens = 0;   ///< the first ones of the text are scored; 0: all
  std::uint64_t seed = 0;  ///< of the tokens that are hidden where it is scored
  int threads = 0;
};

/// Blocks of a text. Training uses every sequence of each length once per epoch. The scored text
/// becomes one stream of tokens with targets that are drawn once; it is then cut into blocks of
/// each length, so that the same tokens are targets, hidden in the same way. Tokens without context
/// at some length (causal models without a template) are targets at no length. Throws InputError
/// for texts that are shorter than a block, UsageError for other objectives.
std::unique_ptr<const LengthSubject> make_text_subject(const TextSubject& request);

struct TaskSubject {
  std::string task;  ///< as task::parse_task takes it
  std::vector<Index> train_lengths, eval_lengths, finetune_lengths;
  Index eval_examples = 256;  ///< of each length
  std::uint64_t seed = 0;     ///< of the scored ones
};

/// A synthetic task: every example of training is new, each of a length drawn among
/// `train_lengths`. The model is causal if the task requires it. Throws UsageError for an unknown
/// task and for lengths that the task does not have.
std::unique_ptr<const LengthSubject> make_task_subject(const TaskSubject& request);

}  // namespace masque::length
