// A label or a number for a text: an encoder, its states pooled, a dense layer over the labels, or
// of one output.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random/random.hpp"
#include "base/string/name_table.hpp"
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
/// Returns the name of `pooling` in pooling_names().
std::string_view pooling_name(ClassifierPooling pooling);

/// What is learnt of a text.
enum class ProblemType {
  kSingleLabel,  ///< one of several labels: cross-entropy
  kRegression,   ///< a number: squared error
};

/// "single_label_classification" or "regression", as config.json has it.
NameTable<ProblemType> problem_types();
/// Returns the name of `problem` in problem_types().
std::string_view problem_type_name(ProblemType problem);

/// Adds a classifier's parameters to `parameters`, zeros: with a `pooling` of kFirst the pooler
/// PREFIXpooler.dense.weight `[hidden_size, hidden_size]`, where PREFIX is `prefix`, and
/// classifier.weight `[labels, hidden_size]`, each with a bias. Returns their map: the pooler at
/// Role::kHeadTransform and the labels at Role::kDecoder. Views of parameters taken before are no
/// longer valid.
template <class T>
ParameterMap add_classifier(Index hidden_size, Index labels, ClassifierPooling pooling,
                            const std::string& prefix, Parameters<T>& parameters);

/// `pooled` `[sequences, hidden_size]` ← one row a sequence of `chunk`, from the states `last`
/// `[wanted rows, hidden_size]` of its wanted rows: with a `pooling` of kFirst that of the only
/// one, its first token; with kMean the mean of all. Every sequence has a wanted row.
template <class T>
void pool_forward(const ExampleChunk& chunk, ClassifierPooling pooling, MatrixView<const T> last,
                  MatrixView<T> pooled);
/// The backward pass of pool_forward, for the same `chunk` and `pooling`: fills `d_last`, the
/// gradient by `last`, from `d_pooled`, that by `pooled`.
template <class T>
void pool_backward(const ExampleChunk& chunk, ClassifierPooling pooling,
                   MatrixView<const T> d_pooled, MatrixView<T> d_last);

/// Texts that a classifier judges.
template <class T>
struct ClassifierTask {
  MatrixView<const T> pooled;           ///< [texts, hidden_size]
  std::span<const TokenId> labels;      ///< one a text
  std::span<const double> row_weights;  ///< weights of the losses
  /// In regression one number a text, added to the only output, whose square is the loss; empty:
  /// labels.
  std::span<const double> offsets;
  double dropout = 0;                    ///< in front of the labels' layer
  RandomStream stream{0, "classifier"};  ///< random numbers of dropout
  std::uint64_t first = 0;               ///< its first number
};

/// Pooler and labels. T is float, double, or without gradients `std::complex<double>`. For one
/// thread; kernels use all.
template <class T>
class ClassifierHead {
 public:
  /// For the places `map` of add_classifier in `parameters`, which must stay; products are in
  /// `precision`.
  ClassifierHead(const ParameterMap& map, Parameters<T>& parameters, kernel::Precision precision);

  /// Packs the values for products: to be called before the first run and after every change of the
  /// values.
  void prepare();
  /// Returns Σ weight · −log softmax(logits)[label] over the texts of `task`, in nats; of
  /// regression Σ weight · (output + offset)². With data in `d_pooled` `[texts, hidden_size]` also
  /// fills that with the gradient by the pooled states, and adds all gradients to those of the
  /// parameters.
  LossSums<T> run(const ClassifierTask<T>& task, MatrixView<T> d_pooled);
  /// softmax(logits) of the last run, of regression the outputs without offsets:
  /// `[texts, labels]`. Valid until the next run.
  MatrixView<const T> outputs() const { return outputs_.view(); }

 private:
  /// Losses of all texts from the logits in outputs_; d_logits_ ← d loss / d logit if `d`.
  LossSums<T> losses(const ClassifierTask<T>& task, bool d);

  Dense<T> pooler_, labels_;
  Matrix<T> raw_, active_, outputs_, d_logits_, d_active_, d_raw_;
};

/// Encoder and head over examples in chunks. An example's rows are those that pooling reads, the
/// target of each is the label; of regression, its offset is the number times −1. Points of latent
/// bottlenecks are their mean directions, in training too. T is float or double. For one thread;
/// kernels use all, and results do not depend on their number.
template <class T>
class Classifier {
 public:
  /// `parameters` must stay; `model_map` has the places of the encoder of `design` in them, `map`
  /// is that of add_classifier with the same `pooling`. Products are in `precision`; `problem` says
  /// which loss counts. Throws as Encoder::Encoder.
  Classifier(const model::Design& design, const ParameterMap& model_map, const ParameterMap& map,
             ClassifierPooling pooling, Parameters<T>& parameters, kernel::Precision precision,
             ProblemType problem = ProblemType::kSingleLabel);

  /// The encoder's design.
  const model::Design& design() const { return encoder_.design(); }
  /// As Encoder::last_layers; the head's own parameters have the number of layers.
  std::vector<Index> last_layers() const { return encoder_.last_layers(); }
  /// To be called before the first run and after every change of the values.
  void prepare();
  /// Adds the gradients of Σ `scale` · loss over `examples`, with `dropout`, to those of the
  /// parameters. `scale` > 0. A report's rows are texts, its losses are not scaled. `passed` is as
  /// RunOutputs::passed.
  LossReport train(std::span<const Example> examples, double scale, const DropoutOptions& dropout,
                   std::function<void(Index)> passed = {});
  /// Returns the losses of `examples` without dropout; appends to `outputs` (if not nullptr) the
  /// probabilities of all labels, or the number, of each text.
  LossReport evaluate(std::span<const Example> examples, std::vector<double>* outputs = nullptr);

  /// As Network::chunk_rows.
  Index chunk_rows = 1024;

 private:
  LossReport run(std::span<const Example> examples, double scale, const DropoutOptions* dropout,
                 std::vector<double>* outputs, const std::function<void(Index)>& passed);

  Encoder<T> encoder_;
  ClassifierHead<T> head_;
  ClassifierPooling pooling_;
  ProblemType problem_;
  Tape<T> tape_;
  Matrix<T> last_, d_last_, pooled_, d_pooled_;
};

}  // namespace masque::train
