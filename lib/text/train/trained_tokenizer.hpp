// Tokenizers made from text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/fast_encoder.hpp"
#include "text/train/word_counts.hpp"

namespace masque::text {

/// What train_tokenizer() makes: BERT's kind or GPT-2's.
enum class TrainedKind { kWordPiece, kByteLevelBpe };

/// What train_tokenizer() makes, and how WordCutter cuts.
struct TrainOptions {
  TrainedKind kind = TrainedKind::kWordPiece;  ///< also how lines are cut into words
  std::size_t size = 30000;                    ///< tokens
  bool lowercase = true;                       ///< WordPiece: lower case, no accents
  std::uint64_t min_count = 2;                 ///< a rarer pair is not joined
  std::size_t max_alphabet = 1000;             ///< WordPiece: characters
  std::size_t max_words = 4'000'000;           ///< that are counted at a time
  std::vector<std::string> special;            ///< more special tokens
};

/// Cuts lines into words as the tokenizer will cut them. Thread-safe.
class WordCutter {
 public:
  /// A cutter for the kind and `lowercase` of `options`.
  explicit WordCutter(const TrainOptions& options);
  /// Calls `use` with each word of `line` (valid UTF-8), normalised; the view lives during the
  /// call.
  void cut(std::string_view line, const std::function<void(std::string_view)>& use) const;

 private:
  Steps steps_;
};

/// A file of a tokenizer: its name and what is in it.
using TrainedFile = std::pair<std::string, std::string>;

/// The files of a tokenizer with a vocabulary of `options` trained on `words` (train_pairs):
/// tokenizer.json, tokenizer_config.json, and vocab.txt or vocab.json and merges.txt. The same for
/// the same counts.
std::vector<TrainedFile> train_tokenizer(const std::vector<CountedWord>& words,
                                         const TrainOptions& options);

}  // namespace masque::text
