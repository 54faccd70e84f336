// One vector for a sentence.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "probe/score/sentence.hpp"

namespace masque::probe {

/// How hidden states become the vector of a sentence.
enum class SentencePooling {
  kMean,       ///< mean of the last states of all tokens, the template's among them
  kCls,        ///< last state of the first token
  kFirstLast,  ///< mean over tokens of the first and of the last layer's output: Su 2021
  kTta,        ///< mean of the last states of the text's tokens: Shin 2020, arXiv:2004.08097
};

/// How VectorMaker makes vectors.
struct VectorOptions {
  SentencePooling pooling = SentencePooling::kMean;  ///< which states are averaged
  bool normalize = false;     ///< divided by its length (by 1e-12 if that is less)
  bool truncate = false;      ///< reads only the first tokens of a sentence that is too long
  Index max_length = 0;       ///< tokens read, those of the template included; 0: the model's
  Index batch_tokens = 8192;  ///< most tokens of a batch; a longer sentence runs alone
  /// The mask of a sentence, where its words decide it; may throw. Empty: the model's.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
};

/// Makes vectors of sentences in order. A vector does not depend on the others. Memory: one batch.
/// For one thread.
class VectorMaker {
 public:
  /// Takes the vector of the sentence that was added with `id`: hidden size numbers.
  using Sink = std::function<void(std::uint64_t id, std::vector<double>&& vector)>;

  /// `model` must outlive it. `sink` receives the vectors in the order of the sentences, during
  /// add() and flush(). `options` apply to all of them.
  VectorMaker(const model::Model& model, const VectorOptions& options, Sink sink);

  /// Why `sentence` is too long; no value if it can be added.
  std::optional<std::string> length_problem(const Sentence& sentence) const;
  /// Adds `sentence`, which has no length_problem(); runs the batch first if it would become too
  /// large. `id` is only handed to the sink. Without a token to pool the vector is 0. Throws as
  /// Model::run does.
  void add(std::uint64_t id, Sentence sentence);
  /// Runs the waiting sentences. Every vector has then been given to the sink.
  void flush();

 private:
  const model::Model& model_;
  VectorOptions options_;
  Index longest_;  ///< 0: no limit
  Sink sink_;
  model::Batch batch_;
  model::Request request_;
  bool any_segments_ = false;
  std::vector<std::uint64_t> ids_;
};

/// Divides `vector` by its length, or by 1e-12 if that is less.
void normalize(std::vector<double>& vector);
/// The cosine of `x` and `y`, which have equal sizes; a length below 1e-12 counts as 1e-12.
double cosine(std::span<const double> x, std::span<const double> y);

/// The settings in a sentence-transformers folder.
struct SentenceFolder {
  std::string model;                       ///< folder of config.json and weights
  std::optional<SentencePooling> pooling;  ///< kMean or kCls; none: not stated
  bool normalize = false;                  ///< whether vectors are divided by their lengths
  Index max_length = 0;                    ///< 0: not stated
  std::vector<std::string> notes;          ///< settings that are ignored
};

/// Reads modules.json of the folder `path` and the files it names; a folder without it is the model
/// itself. Throws InputError for modules and poolings that are not supported, by name, and for
/// files that cannot be read or are above 16 MiB.
SentenceFolder read_sentence_folder(const std::string& path);

}  // namespace masque::probe
