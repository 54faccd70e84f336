// A whole training run: a model that is made, trained, saved and gone on with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/family.hpp"
#include "text/tokenizer.hpp"
#include "train/objective.hpp"
#include "train/recipe.hpp"
#include "train/trainer.hpp"

namespace masque::train {

struct RunOptions {
  DesignRecipe design;  ///< vocab_size and max_position_embeddings may be 0: as the corpus needs
  std::string objective = "mlm";
  ObjectiveOptions asked;  ///< `tokens`, `seed` and `pairs` are filled in
  TrainerOptions trainer;
  kernel::Precision precision = kernel::Precision::kF32;
  double initializer_range = 0.02;
  Index chunk_rows = 1024;
  /// All options that decide the bytes, as they were given; a run goes on only with the same.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// What stands in a checkpoint besides the model.
struct RunFiles {
  std::string metrics;  ///< metrics.jsonl
  std::string picture;  ///< loss.svg; empty: none
};

/// For one thread; kernels use all.
class TrainingRun {
 public:
  /// Model and state as they start. Throws UsageError and InputError for options, designs and
  /// corpora that do not fit each other.
  TrainingRun(RunOptions options, text::Tokenizer tokenizer, Corpus corpus);
  ~TrainingRun();

  const model::Design& design() const { return design_; }
  /// The family whose config.json it gets.
  const std::string& family() const { return family_; }
  Index parameter_count() const;
  const Corpus& corpus() const { return corpus_; }
  const Objective& objective() const { return *objective_; }
  Trainer& trainer() { return *trainer_; }
  Network<float>& network() { return *network_; }
  LossReport evaluate(const Corpus& corpus, Index most);
  /// Of the first `most` sequences that it is trained on, at positions without a loss in training;
  /// only if there are such.
  LossReport evaluate_never_selected(Index most);

  /// Writes a Hugging Face folder with the tokenizer's files and the state of the run, whole or
  /// not at all; with `replace` over an older one of the same run.
  void save(const std::string& folder, bool replace, const RunFiles& files) const;
  /// Whether a folder holds the state of a run.
  static bool has_state(const std::string& folder);
  /// A setting of the run in a folder. Throws InputError.
  static std::string saved_setting(const std::string& folder, const std::string& name);
  /// Goes on from a folder: values, optimizer and step are as they were saved. Returns its
  /// metrics. Throws InputError if its settings, vocabulary or corpus are others, by name.
  std::string resume(const std::string& folder);

 private:
  std::vector<std::pair<std::string, std::string>> facts() const;

  RunOptions options_;
  text::Tokenizer tokenizer_;
  Corpus corpus_;
  model::Design design_;
  std::string family_;
  std::unique_ptr<const Objective> objective_;
  mutable Parameters<float> parameters_;
  Slots slots_;
  std::unique_ptr<Network<float>> network_;
  std::unique_ptr<Trainer> trainer_;
};

/// Steps a second of a run, measured on a few steps that leave no trace.
double measure_speed(const RunOptions& options, const text::Tokenizer& tokenizer,
                     const Corpus& corpus, double seconds);

}  // namespace masque::train
