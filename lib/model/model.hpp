// A model that runs: ids in; states, attention weights, logits and log-probabilities out.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/number/precision.hpp"
#include "mask/expression.hpp"
#include "mask/flow.hpp"
#include "model/design.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// What may stand next to the ids of a sequence; empty or none: as in Batch. Spans are borrowed.
struct SequenceParts {
  std::span<const Index> positions;      ///< one a token
  std::span<const Index> segments;       ///< token types, one a token
  std::optional<mask::Mask> mask;        ///< (tokens, tokens)
  std::optional<mask::Mask> query_mask;  ///< (tokens, tokens), of the query stream
  std::span<const TokenId> source = {};  ///< tokens for the encoder, of encoder–decoders
};

/// Sequences one after the other, without padding.
struct Batch {
  std::vector<TokenId> ids;      ///< ids of all sequences
  std::vector<Index> begins{0};  ///< sequence s is ids [begins[s], begins[s + 1])
  /// In `positions`, at every token of a sequence: its positions are 0, 1, …
  static constexpr Index kNoPosition = std::numeric_limits<Index>::min();
  std::vector<Index> positions;  ///< one an id; empty: kNoPosition everywhere
  std::vector<Index> segments;   ///< token types, one an id; empty: 0
  /// One a sequence, (tokens, tokens): replaces what the model would let through, or with
  /// `masks_join` holds besides.
  /// Empty: the model's own, or ModelOptions::masks.
  std::vector<std::optional<mask::Mask>> masks;
  /// Two streams only, one a sequence: what the query stream may read, in the same way; empty: no
  /// query stream.
  std::vector<std::optional<mask::Mask>> query_masks;
  /// Masks hide tokens of sequences, whatever else the model's mask hides.
  bool masks_join = false;
  /// One a sequence: the points of all latent bottlenecks (VariantDesign::latent), from the first
  /// layer on, each of the sphere's size, instead of what the model makes of the first token. Of
  /// an empty one, and with an empty list, the model makes them.
  std::vector<std::vector<double>> latents;
  /// Of a decoder with SourceDesign, one a sequence: the tokens that its encoder reads, at least
  /// one. Empty: a cache has read them, in a run with at least one token of each sequence.
  std::vector<std::vector<TokenId>> sources;

  /// Number of sequences.
  Index sequences() const { return static_cast<Index>(begins.size()) - 1; }
  /// Tokens of sequence `s`.
  Index length(Index s) const {
    return begins[static_cast<std::size_t>(s) + 1] - begins[static_cast<std::size_t>(s)];
  }
  /// Appends a `sequence` of ids alone.
  void add(std::span<const TokenId> sequence);
  /// Appends a `sequence` and `parts`, what stands next to it, which earlier and later ones may
  /// lack. Copies all. Returns the row at which it begins.
  Index add(std::span<const TokenId> sequence, const SequenceParts& parts);
};

/// What a layer's attention adds to its residual, for experiments.
enum class AttentionOverride {
  kIntact,  ///< what it computes
  kZero,    ///< nothing, biases included; of gated layers: the whole layer adds nothing
  kMean,    ///< what it would if every query read all its visible keys alike
};

/// What a model has read of sequences, so that they can be continued at the cost of their new
/// tokens. For the model that made it. For one run at a time.
class KeyValueCache {
 public:
  virtual ~KeyValueCache() = default;
  /// Number of sequences.
  virtual Index sequences() const = 0;
  /// Tokens of `sequence` that were read.
  virtual Index length(Index sequence) const = 0;
  /// Sequence i becomes the old sequence `from`[i], which may stand there several times; sequences
  /// that are not in `from` are dropped.
  virtual void select(std::span<const Index> from) = 0;
  /// Forgets the tokens of `sequence` after the first `length`, of which it has as many.
  virtual void cut(Index sequence, Index length) = 0;
  /// `sequence`, and each copy of it, will have at most so many `tokens`: its memory grows to that
  /// of these and no further. Beyond them, and without a call (or with 0), it may have room for
  /// twice its tokens.
  virtual void set_longest(Index sequence, Index tokens) = 0;
};

/// Which results are wanted: the observer is given them, but for log-probabilities of `targets`,
/// which Model::run returns.
struct Request {
  bool hidden_states = false;  ///< embeddings and every layer, as transformers lists them
  bool attentions = false;     ///< weights of every layer and head, but not of a query stream
  /// Weights of every layer and head over the tokens of the source (SourceDesign).
  bool source_attentions = false;
  bool attention_rows = false;    ///< with `attentions`: what the weights came from
  bool attention_scores = false;  ///< with `attention_rows`: the scores themselves
  bool logits = false;            ///< the logits of `rows`; with a discriminator one a row
  bool last_states = false;       ///< the last hidden states of `rows`
  bool detections = false;        ///< a number for every token; only with a detector
  bool latents = false;           ///< the points of every sequence; only with latent bottlenecks
  /// Rows of the batch (0 ≤ row < ids) whose logits, last states or log-probabilities are wanted,
  /// ascending; empty with `all_rows`. The last layer and the head work for these only.
  std::vector<Index> rows;
  bool all_rows = false;  ///< all rows of the batch are wanted
  /// One a row: log-probabilities of these ids are returned. Empty: none.
  std::vector<TokenId> targets;
  /// A token with the probability 0, which is no target; of `targets` alone, not of `logits`.
  std::optional<TokenId> excluded;
  std::vector<AttentionOverride> attention;  ///< one a layer, of all streams; empty: kIntact
  /// The batch continues the cached sequences; its keys and values are appended. Masks of the batch
  /// are of the whole sequences. After an exception it is of no use.
  KeyValueCache* cache = nullptr;
};

/// What the weights of a head came from; a_ij = u_ij / d_i, u_ij = f(s_ij − shift_i) as
/// nn/normalizer.hpp has it, s with previous scores and mixed by talking heads before the
/// normalizer. Views end with the call.
template <class T>
struct AttentionRows {
  /// One a query: shift_i + log d_i, so that log Z_i = log_divisor_i + log Σ_j a_ij is the
  /// logarithm of the sum of e^s (or relu² of s) over the visible keys; −∞ without any.
  std::span<const T> log_divisor;
  std::span<const Index> visible;  ///< keys that each query may read; at most `largest_keys`
  /// (queries, keys), with temperature; −∞ where hidden. Empty without Request::attention_scores.
  MatrixView<const T> scores;
};

/// Takes results while they are made; functions that are not overridden do nothing. Calls for one
/// sequence come in order from one thread. Two exceptions: the heads of a layer, and different
/// sequences, may come from several threads at once. f64 models call the functions of double, the
/// others those of float; views end with the call.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The states `rows` (length, hidden size) of `sequence`: `state` 0 is what enters the first
  /// layer, `state` l what layer l − 1 gives, the last one after the final norm. For two towers row
  /// i of a layer is what position i predicts from: the tower's row i − 1 or i + 1, zeros beyond
  /// the sequence.
  virtual void hidden_states(Index sequence, Index state, MatrixView<const float> rows);
  /// `rows` of `sequence` in front of layer `state`, of f64 models.
  virtual void hidden_states(Index sequence, Index state, MatrixView<const double> rows);
  /// `rows` of the query stream of two-stream models, in the same way: (wanted rows of `sequence`,
  /// hidden size) at `state`.
  virtual void query_states(Index sequence, Index state, MatrixView<const float> rows);
  /// `rows` of the query stream of `sequence` at `state`, of f64 models.
  virtual void query_states(Index sequence, Index state, MatrixView<const double> rows);
  /// What the weights of `head` of `layer` came from: `rows`, one a query of `sequence`. Before the
  /// weights of the same head, from the same thread.
  virtual void attention_rows(Index sequence, Index layer, Index head,
                              const AttentionRows<float>& rows);
  /// `rows` of `head` of `layer` and `sequence`, of f64 models.
  virtual void attention_rows(Index sequence, Index layer, Index head,
                              const AttentionRows<double>& rows);
  /// The `weights` (queries, keys) of `head`, one of value_heads() (model/variants.hpp), of `layer`
  /// and `sequence`.
  virtual void attention(Index sequence, Index layer, Index head, MatrixView<const float> weights);
  /// `weights` of `head` of `layer` and `sequence`, of f64 models.
  virtual void attention(Index sequence, Index layer, Index head, MatrixView<const double> weights);
  /// Whether logits() may be called for different sequences by several threads at once; else one
  /// call comes after the other.
  virtual bool takes_logits_at_once() const { return false; }
  /// The `weights` (queries, tokens of the source) of `head` of `layer` and `sequence`.
  virtual void source_attention(Index sequence, Index layer, Index head,
                                MatrixView<const float> weights);
  /// `weights` over the source of `head` of `layer` and `sequence`, of f64 models.
  virtual void source_attention(Index sequence, Index layer, Index head,
                                MatrixView<const double> weights);
  /// Logits of the request's rows `first` …, which lie in `sequence`: `rows` (rows, vocabulary), or
  /// (rows, 1) of heads with one number. Those of a sequence may come in several calls.
  virtual void logits(Index sequence, Index first, MatrixView<const float> rows);
  /// `rows` of logits of `sequence` from the request's row `first`, of f64 models.
  virtual void logits(Index sequence, Index first, MatrixView<const double> rows);
  /// Last states of the request's rows `first` …, which are all that lie in `sequence`: `rows`
  /// (rows, last_width()), after the final norm. After all chunks are computed, from the calling
  /// thread.
  virtual void last_states(Index sequence, Index first, MatrixView<const float> rows);
  /// `rows` of last states of `sequence` from the request's row `first`, of f64 models.
  virtual void last_states(Index sequence, Index first, MatrixView<const double> rows);
  /// `probabilities` (length, 1): how likely each token of `sequence` is wrong.
  virtual void detections(Index sequence, MatrixView<const float> probabilities);
  /// `probabilities` of the tokens of `sequence`, of f64 models.
  virtual void detections(Index sequence, MatrixView<const double> probabilities);
  /// The `point` (1, size) of `sequence` at the bottleneck in front of `layer`: μ of
  /// latent_forward, or what was given.
  virtual void latents(Index sequence, Index layer, MatrixView<const float> point);
  /// The `point` of `sequence` in front of `layer`, of f64 models.
  virtual void latents(Index sequence, Index layer, MatrixView<const double> point);
};

/// How a model is to run, where that is not as its checkpoint says.
struct ModelOptions {
  /// Precision of products; kF64: all is double.
  kernel::Precision precision = kernel::Precision::kF32;
  std::string family;                     ///< empty: by config.json
  std::vector<mask::MaskLayer> masks;     ///< one for all layers, or a list; empty: the model's
  std::optional<mask::KeySource> keys;    ///< none: the model's
  std::optional<mask::QueryStart> query;  ///< none: the model's
  std::string normalizer;                 ///< "log_n(base=512)"; empty: the model's
  std::optional<TokenId> mask_token_id;   ///< for QueryStart::kPosition; none: the design's
  /// Of an encoder–decoder, if the checkpoint has its decoder: the model is the decoder, with the
  /// encoder that it reads. False: the encoder alone.
  bool decoder = false;
  /// Bytes that packed weights of dense layers may take: of layers that do not fit, the last ones,
  /// they are read again in each run, which gives the same results. Nothing: all are packed, each
  /// for the product that is the faster one; with a limit all large ones take the product of
  /// StripWeights, whose results may differ in rounding. Not with kF64.
  std::optional<std::uint64_t> memory;
};

/// A loaded model. Immutable: `run` may be called from several threads.
class Model {
 public:
  virtual ~Model() = default;

  /// The design that runs, without the changes of ModelOptions.
  virtual const Design& design() const = 0;
  /// The precision of its products; with kF64 the observer is given double, else float.
  virtual kernel::Precision precision() const = 0;
  /// The encoder whose states the model reads (SourceDesign); nullptr: none. As valid as this.
  virtual const Model* encoder() const { return nullptr; }
  /// Tensors of the checkpoint that nothing uses.
  virtual const std::vector<std::string>& unused() const = 0;

  /// Runs `batch`. Returns log-probabilities (nats) of `request.targets`, one a row; empty if none
  /// were requested. `observer` is given the other results; nullptr: nobody is. Results of a
  /// sequence do not depend on the others of the batch nor on threads. Memory grows with the tokens
  /// of a few chunks of sequences, besides what is requested. Throws InputError for ids beyond the
  /// vocabulary, sequences beyond max_position_embeddings, token types beyond the table, states
  /// that are not finite, and a head, a detector or a bottleneck that the model has not; UsageError
  /// for masks that do not fit, and for what its variants cannot answer. Lists of another length
  /// than their contract says are MASQUE_CHECK.
  virtual std::vector<double> run(const Batch& batch, const Request& request,
                                  Observer* observer = nullptr) const = 0;

  /// Memory for sequences that are read in several runs (Request::cache). Requires that no token
  /// reads a later one. `own_masks`: the caller's masks guarantee it; otherwise the model's mask
  /// must be causal. The same results as those of one run, up to rounding. Bytes a token: 2 ·
  /// layers · key heads · head size · those of a number, with KeyValueCache::set_longest().
  /// nullptr: the model cannot, since its rows read later ones, or more of the earlier ones than
  /// keys and values.
  virtual std::unique_ptr<KeyValueCache> make_cache(Index /*sequences*/, bool /*own_masks*/) const {
    return nullptr;
  }
};

/// Loads the checkpoint at `path` (load_model) and prepares its weights, to run with `options`.
/// Throws as load_model; UsageError for options that do not fit the model; with
/// ModelOptions::decoder they may change nothing but the precision of encoder–decoders.
std::unique_ptr<Model> open_model(const std::string& path, const ModelOptions& options = {});

}  // namespace masque::model
