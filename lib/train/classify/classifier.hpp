// A label or a number for a text: an encoder, its states pooled, a dense layer over the labels, or
// of one output.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_table.hpp"
#include "base/random.hpp"
#include "train/network/encoder.hpp"
#include "train/network/head.hpp"
#include "train/network/network.hpp"

namespace masque::train {

/// What stands for a text.
enum class ClassifierPooling {
  kFirst,  ///< tanh of a dense layer on the first token's state: BERT's pooler
  kMean,   ///< the mean of all tokens' states, those of the template included
};

/// "cls" or "mean", as config.json and options have it.
NameTable<ClassifierPooling> pooling_names();
std::string_view pooling_name(ClassifierPooling pooling);

/// What is learnt of a text.
enum class ProblemType {
  kSingleLabel,  ///< one of several labels: cross-entropy
  kRegression,   ///< a number: squared error
};

/// "single_label_classification" or "regression", as config.json has it.
NameTable<ProblemType> problem_types();
std::string_view problem_type_name(ProblemType problem);

/// Adds a classifier's parameters, zeros: PREFIXpooler.dense.* (hidden size, hidden size) of
/// kFirst, and classifier.* (labels, hidden size). The map has the pooler at
/// Role::kHeadTransform and the labels at Role::kDecoder.
template <class T>
ParameterMap add_classifier(Index hidden_size, Index labels, ClassifierPooling pooling,
                            const std::string& prefix, Parameters<T>& parameters);

/// pooled ← one row a sequence of the chunk, from the last states of its wanted rows: the first
/// token of each (kFirst) or all (kMean).
template <class T>
void pool_forward(const ExampleChunk& chunk, ClassifierPooling pooling, MatrixView<const T> last,
                  MatrixView<T> pooled);
/// d_last is filled.
template <class T>
void pool_backward(const ExampleChunk& chunk, ClassifierPooling pooling,
                   MatrixView<const T> d_pooled, MatrixView<T> d_last);

/// Texts that a classifier judges.
template <class T>
struct ClassifierTask {
  MatrixView<const T> pooled;           ///< (texts, hidden size)
  std::span<const TokenId> labels;      ///< one a text
  std::span<const double> row_weights;  ///< of the losses
  /// Of regression: one a text, added to the only output, whose square is the loss; empty: labels.
  std::span<const double> offsets;
  double dropout = 0;                    ///< in front of the labels' layer
  RandomStream stream{0, "classifier"};  ///< of dropout
  std::uint64_t first = 0;               ///< its first number
};

/// Pooler and labels. T as of Encoder. For one thread; kernels use all.
template <class T>
class ClassifierHead {
 public:
  ClassifierHead(const ParameterMap& map, Parameters<T>& parameters, kernel::Precision precision);

  /// After every change of the values.
  void prepare();
  /// Σ weight · −log softmax(logits)[label], of regression Σ weight · (output + offset)². With
  /// `d_pooled` (filled; texts, hidden size) also all gradients, added to those of the parameters.
  LossSums<T> run(const ClassifierTask<T>& task, MatrixView<T> d_pooled);
  /// softmax(logits) of the last run, of regression the outputs without offsets: (texts, labels).
  MatrixView<const T> outputs() const { return outputs_.view(); }

 private:
  /// Losses of all texts from the logits in outputs_; d_logits_ ← d loss / d logit if `d`.
  LossSums<T> losses(const ClassifierTask<T>& task, bool d);

  Dense<T> pooler_, labels_;
  Matrix<T> raw_, active_, outputs_, d_logits_, d_active_, d_raw_;
};

/// Encoder and head over examples in chunks. An example's rows are those that pooling reads, the
/// target of each is the label; of regression, its offset is the number times −1. T is float or
/// double. For one thread; kernels use all, and results do not depend on their number.
template <class T>
class Classifier {
 public:
  /// `parameters` must stay; `map` is that of add_classifier.
  Classifier(const model::Design& design, const ParameterMap& model_map, const ParameterMap& map,
             ClassifierPooling pooling, Parameters<T>& parameters, kernel::Precision precision,
             ProblemType problem = ProblemType::kSingleLabel);

  const model::Design& design() const { return encoder_.design(); }
  /// After every change of the values.
  void prepare();
  /// Adds the gradients of Σ scale · loss to those of the parameters. A report's rows are texts.
  LossReport train(std::span<const Example> examples, double scale, const DropoutOptions& dropout);
  /// Losses without dropout; the probabilities of all labels, or the number, of each text are
  /// appended to `outputs`.
  LossReport evaluate(std::span<const Example> examples, std::vector<double>* outputs = nullptr);

  /// As Network::chunk_rows.
  Index chunk_rows = 1024;

 private:
  LossReport run(std::span<const Example> examples, double scale, const DropoutOptions* dropout,
                 std::vector<double>* outputs);

  Encoder<T> encoder_;
  ClassifierHead<T> head_;
  ClassifierPooling pooling_;
  ProblemType problem_;
  Tape<T> tape_;
  Matrix<T> last_, d_last_, pooled_, d_pooled_;
};

}  // namespace masque::train
