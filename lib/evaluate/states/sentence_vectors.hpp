// One vector for a sentence.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/sentence.hpp"
#include "evaluate/states/vector_steps.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// How hidden states become the vector of a sentence.
enum class SentencePooling {
  kMean,          ///< mean of the last states of all tokens, the template's among them
  kCls,           ///< last state of the first token
  kFirstLast,     ///< mean over tokens of the first and of the last layer's output: Su 2021
  kTta,           ///< mean of the last states of the text's tokens: Shin 2020, arXiv:2004.08097
  kMax,           ///< the greatest of each number of the last states of all tokens
  kMeanSqrt,      ///< their sum by √(number of tokens)
  kWeightedMean,  ///< mean of them, each with its position, from 1, as the weight
  kLastToken,     ///< last state of the last token
};
/// "mean", "cls", "first-last", "tta", and as sentence-transformers calls them "max",
/// "mean_sqrt_len_tokens", "weightedmean", "lasttoken". The table is static.
NameTable<SentencePooling> pooling_names();

/// How VectorMaker makes vectors.
struct VectorOptions {
  /// Which states make a vector; of several the vectors follow each other. kFirstLast is alone.
  std::vector<SentencePooling> poolings = {SentencePooling::kMean};
  std::vector<VectorStep> steps = {};  ///< what becomes of it next; each reads what is before it
  bool normalize = false;              ///< then divided by its length, before `dim` counts
  Index dim = 0;  ///< numbers of it that are kept, the first ones; 0, or more than it has: all
  bool normalize_kept = false;  ///< divided by its length after that
  bool truncate = false;        ///< reads only a part of a sentence that is too long
  bool keep_last = false;       ///< that part is the last tokens of the text; false: the first
  Index max_length = 0;         ///< tokens read, those of the template included; 0: the model's
  /// First tokens that are read but not pooled, as sentence-transformers leaves out the tokens of a
  /// prompt; their positions count. kCls takes the token after them, or the first where there is
  /// none.
  Index unpooled = 0;
  Index batch_tokens = 8192;  ///< most tokens of a batch; a longer sentence runs alone
  /// The mask of a sentence, where its words decide it; may throw. Empty: the model's.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
};

/// How many numbers a vector by `options` has, of a model with states of `hidden` numbers. Throws
/// InputError for a step that reads another number.
Index vector_size(const VectorOptions& options, Index hidden);

/// Makes vectors of sentences in order. A vector does not depend on the others. Memory: one batch.
/// For one thread.
class VectorMaker {
 public:
  /// Takes the vector of the sentence that was added with `id`: vector_size() numbers.
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

  /// What was left out of the sentences that were added.
  const ShortenedTexts& shortened() const { return shortened_; }

 private:
  const model::Model& model_;
  VectorOptions options_;
  ShortenedTexts shortened_;
  Index longest_;  ///< 0: no limit
  Sink sink_;
  model::Batch batch_;
  model::Request request_;
  bool any_segments_ = false;
  /// The tokens of a sentence that are pooled.
  struct Range {
    Index first = 0, end = 0;
  };
  std::vector<std::uint64_t> ids_;
  std::vector<Range> ranges_;  ///< of each sentence and pooling
};

/// The cosine of `x` and `y`, which have equal sizes; a length below 1e-12 counts as 1e-12.
double cosine(std::span<const double> x, std::span<const double> y);

/// How similar two vectors are: the similarity functions of sentence-transformers.
enum class Similarity {
  kCosine,     ///< cosine()
  kDot,        ///< the sum of products
  kEuclidean,  ///< minus the distance
  kManhattan,  ///< minus the sum of absolute differences
};
/// "cosine", "dot", "euclidean", "manhattan". The table is static.
NameTable<Similarity> similarity_names();
/// How similar `x` and `y`, which have equal sizes, are by `kind`.
double similarity(Similarity kind, std::span<const double> x, std::span<const double> y);

/// The settings in a sentence-transformers folder.
struct SentenceFolder {
  std::string model;                      ///< folder of config.json and weights
  std::vector<SentencePooling> poolings;  ///< as VectorOptions has them; none: not stated
  std::vector<VectorStep> steps;          ///< modules after the pooling, but for `normalize`
  bool normalize = false;                 ///< whether vectors are divided by their lengths then
  Index max_length = 0;                   ///< 0: not stated; then the tokenizer's counts
  bool include_prompt = true;             ///< whether the tokens of a prompt are pooled
  bool lower_case = false;                ///< text is read in lower case
  /// Texts in front of each sentence, by name, in the order of the file.
  std::vector<std::pair<std::string, std::string>> prompts;
  std::optional<std::string> default_prompt_name;  ///< one of `prompts`; none: no prompt
  std::optional<Similarity> similarity;            ///< none: not stated
  Index dim = 0;                                   ///< numbers of a vector that are kept; 0: all
  std::vector<std::string> notes;                  ///< settings that are ignored
};

/// Reads modules.json of the folder `path`, or of the folder of the file `path`, and the files that
/// it names, weights among them, as sentence-transformers 6.2 does; a folder without it is the
/// model itself. Throws InputError for modules, poolings and settings that are not supported, by
/// name, and for files that cannot be read or are above 16 MiB.
SentenceFolder read_sentence_folder(const std::string& path);

/// What tokenizer_config.json says of long texts.
struct TokenizerLimit {
  Index max_length = 0;  ///< model_max_length: tokens of the longest text; 0: no limit
  /// Text is cut in front: truncation_side is the left, or the truncation of tokenizer.json is
  /// there.
  bool keep_last = false;
};
/// Reads it next to the tokenizer `path`, a folder or a file; without the file there is no limit.
/// Throws InputError for what is no limit and no side, and for a file that cannot be read or is
/// above 16 MiB.
TokenizerLimit read_tokenizer_limit(const std::string& path);

}  // namespace masque::evaluate
