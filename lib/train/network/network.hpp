// An encoder with its head, run over examples in chunks: losses, gradients.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "model/family.hpp"
#include "train/network/copy_gate.hpp"
#include "train/network/encoder.hpp"
#include "train/network/layer_magnitudes.hpp"

namespace masque::train {

/// A draw for each wanted row of examples, in their order, by kernel::vocabulary_loss.
struct Sampling {
  std::vector<double> uniforms;  ///< in [0, 1), one a row
  std::vector<TokenId> tokens;   ///< made as long by the network that draws
  std::vector<double> losses;    ///< −log p of the drawn tokens, where keeps_losses; made as long
  bool keeps_losses = false;     ///< whether `losses` are wanted
};

/// What a loss adds for the points of latent bottlenecks that learn their concentration κ, in each
/// sequence with a row: weight · Σ KL, their divergence from the uniform distribution.
struct DivergenceLoss {
  double weight = 1;  ///< weight of a nat
  /// The weight rises evenly to its whole over the first half of every so many steps (Fu et al.
  /// 2019, arXiv:1903.10145); 0: it does not change.
  std::int64_t cycle = 0;
  /// Nats of each bottleneck that cost nothing (Kingma et al. 2016, arXiv:1606.04934).
  double free_nats = 0;

  /// The weight in `step`, from 1.
  double weight_at(std::uint64_t step) const;
};

/// What a run over examples found.
struct LossReport {
  double loss = 0;               ///< Σ weight · loss, nats
  double weight = 0;             ///< Σ weight of rows, or Example::divisor
  Index rows = 0;                ///< that have a loss
  Index correct = 0;             ///< those of them that are right
  Index predicted_replaced = 0;  ///< rows that a discriminator takes for replaced
  Index true_positives = 0;      ///< those of them that are
  // In a network that measures the diversity of attention:
  Diversities diversity{};  ///< Σ over sequences with a row
  Index sequences = 0;      ///< that are in that sum
  // In a network with a DivergenceLoss:
  double divergence = 0;  ///< Σ over sequences with a row, without its weight
  Index coded = 0;        ///< sequences that are in that sum

  /// Mean loss of a row, nats; 0 without weight.
  double mean() const { return weight > 0 ? loss / weight : 0; }
  /// Share of rows that are right; 0 without rows.
  double accuracy() const {
    return rows > 0 ? static_cast<double>(correct) / static_cast<double>(rows) : 0;
  }
  /// Adds what was found of other examples.
  void add(const LossReport& other);
};

/// Returns Σ weights of the rows of `examples`; of those with a divisor that.
double total_weight(std::span<const Example> examples);

/// What a run hands out besides its report, where there is a place for it.
template <class T>
struct RunOutputs {
  Sampling* sampling = nullptr;  ///< tokens are drawn from what the vocabulary says at the rows
  std::vector<double>* losses = nullptr;  ///< ← one a row, unweighted, nats; not of a copy gate
  Matrix<T>* last = nullptr;              ///< ← last states of the rows, [rows, hidden_size]
  /// ← one a layer, over all rows that went through it; not of two towers.
  std::vector<LayerMagnitudes>* layers = nullptr;
  /// For train(): called in the backward pass of the last chunk as Tape::passed, with what
  /// Network::last_layers is about; may be empty.
  std::function<void(Index)> passed = {};
};

/// The encoder of an encoder–decoder, next to the decoder that reads its states
/// (model::SourceDesign).
struct EncoderPart {
  model::Design design;  ///< its design, as wide as the decoder's
  ParameterMap map;      ///< its places in the parameters of both
};

/// An encoder with its head, or a decoder with its head and the encoder that it reads. T is float
/// or double. For one thread; kernels use all threads, and results do not depend on their number.
template <class T>
class Network {
 public:
  /// For a model of `design`, which has a head, at the places `map` of `parameters`, which must
  /// stay; products are in `precision`. With a `gate` the loss is CopyGate's. `source`, which is
  /// copied: the encoder of a design with SourceDesign, whose examples have sources; else nullptr.
  /// Throws as Encoder::Encoder.
  Network(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
          kernel::Precision precision, const CopyGateParameters& gate = {},
          const EncoderPart* source = nullptr);

  /// The design, as it was given.
  const model::Design& design() const { return encoder_.design(); }
  /// As Encoder::set_recompute, with `recompute`.
  void set_recompute(Recompute recompute);
  /// As Encoder::kappa, of `bottleneck`.
  double kappa(Index bottleneck) const { return encoder_.kappa(bottleneck); }
  /// As Encoder::stop_at_blocks, with blocks of `size` rows.
  void stop_at_blocks(Index size) { encoder_.stop_at_blocks(size); }
  /// As Encoder::last_layers; a head's own parameters have the number of layers, those of the
  /// encoder of an encoder–decoder −1.
  std::vector<Index> last_layers() const;
  /// To be called before the first run, and after every change of the values and of what is
  /// trained.
  void prepare();

  /// From now on `token` of the vocabulary has the probability 0: Head::exclude.
  void exclude(TokenId token);

  /// From now on the measures of attention's diversity are reported, and train() also adds the
  /// gradients of −Σ_k weights[k] · D_k, each the mean over the sequences of `examples` with a row,
  /// their layers and heads. Throws as Encoder::measure_diversity, and UsageError for an
  /// encoder–decoder.
  void reward_diversity(const Diversities& weights);
  /// Whether reward_diversity() was called.
  bool rewards_diversity() const { return rewards_.has_value(); }
  /// Number of sequences with a row of the whole batch, over which the next train() takes the mean
  /// of the reward, where its examples are a part of them; 0: they are all.
  Index rewarded_sequences = 0;

  /// From now on train() also adds the gradients of `loss`, times its scale; reports have the
  /// divergence, and losses are without it. For a design that learns κ.
  void add_divergence(const DivergenceLoss& loss) { divergence_ = loss; }

  /// Adds the gradients of Σ `scale` · weight · loss over `examples`, with `dropout`, to those of
  /// the parameters that are trained. `scale` > 0; the report is not scaled. Fills `outputs`.
  LossReport train(std::span<const Example> examples, double scale, const DropoutOptions& dropout,
                   const RunOutputs<T>& outputs = {});
  /// Returns the losses of `examples` alone, without dropout. Fills `outputs`.
  LossReport evaluate(std::span<const Example> examples, const RunOutputs<T>& outputs = {});
  /// The same for `examples` and `outputs` with the `dropout` that train() would have.
  LossReport evaluate_with_dropout(std::span<const Example> examples, const DropoutOptions& dropout,
                                   const RunOutputs<T>& outputs);

  /// Rows that go through the layers together, whole sequences: it bounds the memory. Gradients are
  /// sums over chunks, so that another number changes them by rounding.
  Index chunk_rows = 1024;

 private:
  LossReport run(std::span<const Example> examples, double scale, const DropoutOptions* dropout,
                 bool learns, const RunOutputs<T>& outputs);
  /// Makes the states that `chunk` reads, with `dropout`: Tape::source.
  void read_sources(const ExampleChunk& chunk, const DropoutOptions& dropout);
  /// From the gradient by the last states of `chunk` to those of the parameters, with `dropout`.
  void backward(const ExampleChunk& chunk, const DropoutOptions& dropout);
  LossSums<T> judge(const ExampleChunk& chunk, std::span<const double> row_weights,
                    MatrixView<T> d_last, std::size_t first, const RunOutputs<T>& outputs);

  Parameters<T>* parameters_;
  ParameterMap map_;
  bool learns_ = true;  ///< something of it is trained
  Encoder<T> encoder_;
  Head<T> head_;
  CopyGate<T> gate_;
  Tape<T> tape_;
  /// The encoder of an encoder–decoder at work.
  struct Source {
    Source(const EncoderPart& given, Parameters<T>& parameters, kernel::Precision precision)
        : part(given), encoder(part.design, part.map, parameters, precision) {}
    EncoderPart part;
    Encoder<T> encoder;
    ExampleChunk chunk;      ///< sources of the decoder's chunk
    DropoutOptions dropout;  ///< its own
    Tape<T> tape;
    Matrix<T> states, d_states;
  };
  std::unique_ptr<Source> source_;  ///< nullptr: none
  Matrix<T> last_, d_last_;
  std::optional<Diversities> rewards_;
  std::optional<DivergenceLoss> divergence_;
};

/// How a model starts.
struct StartOptions {
  std::uint64_t seed = 0;           ///< seed of all values that are drawn
  double initializer_range = 0.02;  ///< deviation of weights and tables
  /// DeepNorm: Xavier weights, with this gain for values, output and feed-forward; 0: no.
  double residual_gain = 0;
};

/// Fills the values of a model of `design` at the places `map` of `parameters`, its detector's too,
/// as `options` say: a number is a function of seed, Parameter::start and place. T is float or
/// double.
template <class T>
void initialize_parameters(const model::Design& design, const ParameterMap& map,
                           const StartOptions& options, Parameters<T>& parameters);

}  // namespace masque::train
