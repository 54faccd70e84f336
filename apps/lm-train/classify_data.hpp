// What all seeds of lm-train classify share: the start, the texts, their labels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "classify_options.hpp"
#include "train/classify/classify_run.hpp"

namespace masque::lm_train {

/// A file of texts whose labels are numbered.
struct LabelledData {
  train::LabelledCorpus read;
  train::LabelledTexts texts;  ///< points at `read`
};

struct ClassifyData {
  text::Tokenizer tokenizer;
  train::ClassifierStart start = {};
  std::vector<std::string> names = {};  ///< of the labels
  LabelledData train = {};
  std::optional<LabelledData> eval = {};
  std::int64_t steps = 0;
  train::ClassifierPooling pooling = train::ClassifierPooling::kFirst;
  std::optional<std::string> mask = {};  ///< in place of the model's

  /// The texts that the results are of.
  const LabelledData& judged() const { return eval ? *eval : train; }
};

/// Reads everything into `all`, which stays where it is. Throws InputError and UsageError for what
/// does not fit.
void open_data(const ClassifyCommand& options, ClassifyData& all, cli::Session& session);

}  // namespace masque::lm_train
