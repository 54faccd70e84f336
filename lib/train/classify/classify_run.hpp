// Fine-tuning to labels: a start that several seeds share, one run of a seed, its folder.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluate/score/classification.hpp"
#include "mask/expression.hpp"
#include "model/checkpoint/starting_model.hpp"
#include "model/design.hpp"
#include "records/drop.hpp"
#include "text/tokenizer.hpp"
#include "train/classify/classifier.hpp"
#include "train/data/corpus.hpp"
#include "train/data/labelled_corpus.hpp"
#include "train/network/recipe.hpp"
#include "train/run/folder_parts.hpp"
#include "train/run/trained_parameters.hpp"
#include "train/run/trainer.hpp"

namespace masque::train {

// Texts as a classifier takes them, in training and in judgement.

/// What is learnt of a text.
struct TextTarget {
  TokenId label = 0;  ///< number of the label, from 0
  double number = 0;  ///< in regression, with the label 0
};

/// How a classifier reads texts.
struct ClassifyTextOptions {
  /// An expression of the mask language for every text, in training and judgement, which the folder
  /// keeps; none: the model's mask.
  std::optional<std::string> mask = {};
  /// DropToken of what is learnt: other tokens in each epoch; the mask is one of what is left.
  records::DropOptions drop{.rate = 0};
  std::uint64_t seed = 0;           ///< seed of that
  records::TokenTable tokens = {};  ///< tokens of the tokenizer, for that and the words of masks
};

/// Makes a classifier's examples from texts. Immutable, thread-safe.
class ClassifyExamples {
 public:
  /// For a classifier with this `pooling` on an encoder of `design`, which reads texts as `options`
  /// say; keeps no reference. Throws UsageError for a mask or a share that is none.
  ClassifyExamples(const ClassifyTextOptions& options, ClassifierPooling pooling,
                   const model::Design& design);

  /// Throws UsageError and InputError for texts of `corpus` that cannot be taken: longer ones than
  /// the model, lengths that the mask has not, first tokens that read themselves alone where they
  /// are pooled.
  void check(const Corpus& corpus) const;
  /// Returns the text `item` as it is judged. The rows are those that pooling reads, the target of
  /// each is the label of `target`, its offset the number times −1.
  Example whole(const CorpusItem& item, const TextTarget& target) const;
  /// Returns the text `item` with `target` as it is learnt in `epoch`: without the tokens that
  /// DropToken takes out.
  Example dropped(const CorpusItem& item, std::uint64_t epoch, const TextTarget& target) const;

 private:
  Example example(records::Record record, const TextTarget& target) const;
  mask::Mask mask_of(std::span<const TokenId> ids) const;

  ClassifierPooling pooling_;
  bool segments_;
  Index longest_;  ///< text; 0: any
  records::TokenTable tokens_;
  std::unique_ptr<const records::Corruption> drop_;
  std::optional<mask::MaskExpression> mask_;  ///< none: the model's, the same for all texts
};

// Starts and runs.

/// What classifiers start from: a checkpoint, or a design alone.
struct ClassifierStart {
  model::Design design;  ///< without a head
  /// The checkpoint; what it lacks starts at random. nullptr: all does.
  std::shared_ptr<const model::StartingModel> model;
  Matrix<float> pooler_weight;  ///< BERT's pooler, [hidden_size, hidden_size]; else empty
  Matrix<float> pooler_bias;    ///< bias of the pooler, [1, hidden_size]; else empty
  /// The labels of a checkpoint that classifies as ClassifyRun does, in the order of their numbers,
  /// with their layer, and how it pools; empty where it has no such layer, or another head under
  /// it.
  std::vector<std::string> names;                   ///< in regression one name
  ProblemType problem = ProblemType::kSingleLabel;  ///< what such a checkpoint predicts
  Matrix<float> label_weight;                       ///< weight of its labels, [labels, hidden_size]
  Matrix<float> label_bias;                         ///< bias of that layer, [1, labels]
  std::optional<ClassifierPooling> pooling;         ///< pooling of such a checkpoint
  /// The mask that such a checkpoint was trained with in place of the model's.
  std::optional<std::string> mask;
  double residual_gain = 0;  ///< StartOptions::residual_gain of a new encoder
};

/// Reads the folder `checkpoint`. `full_mask`: every token reads every other one and itself, where
/// the model's mask says otherwise (T-TA's diagonal is dropped). Throws InputError as load_model;
/// UsageError if `full_mask` is asked for and the mask is full already.
ClassifierStart start_of(const std::string& checkpoint, bool full_mask);
/// Returns a new encoder of `recipe` with two token types, and with the pad and mask tokens of
/// `tokenizer`. `recipe` has its vocab_size and max_position_embeddings.
ClassifierStart start_of(const DesignRecipe& recipe, const text::Tokenizer& tokenizer);

/// How a ClassifyRun trains.
struct ClassifyOptions {
  ClassifierPooling pooling = ClassifierPooling::kFirst;  ///< what stands for a text
  ClassifyTextOptions texts;                              ///< how texts are read
  TrainedOptions trained;                                 ///< which parameters are trained
  TrainerOptions trainer;  ///< its seed is the run's: labels' layer, order, dropout
  kernel::Precision precision = kernel::Precision::kF32;  ///< precision of products
  double initializer_range = 0.02;                        ///< StartOptions::initializer_range
  Index chunk_rows = 1024;                                ///< Network::chunk_rows
};

/// What a classifier makes of texts.
struct Classified {
  LossReport report;                  ///< in regression of numbers in standard units (ClassifyRun)
  evaluate::Confusion confusion;      ///< empty in regression
  std::vector<TokenId> labels;        ///< the right ones, one a text
  std::vector<TokenId> predicted;     ///< the likeliest ones, one a text; of regression empty
  std::vector<double> probabilities;  ///< [texts, labels]; of regression empty
  std::vector<double> numbers;        ///< in regression the right ones, one a text; else empty
  std::vector<double> predicted_numbers;  ///< in regression, in the units of `numbers`
};

/// Labels of a corpus: texts, and the number of each one's label, or of regression the numbers
/// themselves with labels of 0.
struct LabelledTexts {
  const Corpus* corpus = nullptr;  ///< must stay
  std::vector<TokenId> labels;     ///< one an item of the corpus
  std::vector<double> numbers;     ///< in regression, one an item; else empty
};

/// Returns the XXH3 hash of the corpus of `texts`, of the labels' numbers and of the numbers, in
/// hexadecimal digits.
std::string digest_of(const LabelledTexts& texts);

/// One run of a seed. Regression learns numbers less their mean, over their standard deviation, and
/// saves a layer that gives them as they are; without a step its units are those of the numbers.
/// For one thread; kernels use all, and no byte depends on their number.
class ClassifyRun {
 public:
  /// `start` is read here alone; the corpus of `texts`, which are learnt as `options` say, must
  /// stay, as must `ranks`: all of them make the same run together, and then classify() and save()
  /// are for one of them. `names` are those of the labels: where they are the start's, its layer
  /// goes on, else a new one starts at random. Texts with numbers are regression: of one name, and
  /// of two different numbers at least. Throws UsageError for designs that cannot be trained,
  /// pooling that does not fit the mask, a mask that is none, and texts longer than the model.
  ClassifyRun(const ClassifierStart& start, const ClassifyOptions& options,
              std::vector<std::string> names, LabelledTexts texts, Ranks& ranks = one_rank());
  ~ClassifyRun();

  /// The trainer on the texts that are learnt. Lives as long as the run.
  Trainer& trainer() { return *trainer_; }
  /// Number of all values of encoder, pooler and labels' layer.
  Index parameter_count() const { return parameters_.size(); }
  /// Number of values that are trained.
  Index trained_count() const { return count_trained(parameters_); }
  /// Throws as ClassifyExamples::check for `texts` that classify() cannot take.
  void check(const LabelledTexts& texts) const { examples_->check(*texts.corpus); }
  /// Judges `texts` with the values as they are, without dropout. Throws as check().
  Classified classify(const LabelledTexts& texts);
  /// What decides its bytes in addition to the options: pooling, mask, the labels' names, digests
  /// of the texts, the config.json and the values as they are, so to be requested before the first
  /// step.
  std::vector<std::pair<std::string, std::string>> facts();

  /// Writes the Hugging Face folder `folder`, whole or not at all: of BERT that of
  /// BertForSequenceClassification; of other families the model's config.json and tensors with
  /// pooler.dense and classifier next to them; without its own head. The files of `tokenizer` and
  /// `files`, names and texts, stand in it too, and last the one that `record` returns for the
  /// digests of all others. Throws InputError if there is one already or it cannot be written.
  void save(
      const std::string& folder, const text::Tokenizer& tokenizer,
      const std::vector<std::pair<std::string, std::string>>& files,
      const std::function<std::pair<std::string, std::string>(const FileDigests& others)>& record);

 private:
  class Loss;
  void start_parameters(const ClassifierStart& start);
  TextTarget target(const LabelledTexts& texts, Index item) const;
  /// The layer of a start that goes on, in standard units.
  void standardise();
  ProblemType problem() const;
  std::string config_text() const;

  ClassifyOptions options_;
  std::vector<std::string> names_;
  LabelledTexts texts_;
  double mean_ = 0, deviation_ = 1;  ///< mean of the numbers that are learnt
  model::Design design_;
  /// Where the design is one of its family alone; else the family of model::saved_design is
  /// written.
  std::shared_ptr<const model::StartingModel> family_;
  model::SavedDesign saved_;  ///< `design_` as it is written
  std::string prefix_;        ///< prefix of the model's tensors
  bool is_bert_ = false;
  Parameters<float> parameters_;
  ParameterMap model_map_, map_;
  std::unique_ptr<Classifier<float>> classifier_;
  std::unique_ptr<const ClassifyExamples> examples_;
  std::unique_ptr<StepLoss> loss_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace masque::train
