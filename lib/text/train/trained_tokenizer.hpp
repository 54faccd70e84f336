// Tokenizers made from text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/fast/fast_encoder.hpp"

namespace masque::text {

// How often words occur, in bounded memory.

/// A word and how often it occurs.
struct CountedWord {
  std::string text;         ///< the word
  std::uint64_t count = 0;  ///< its occurrences
};

/// Counts words and forgets rare ones when there are too many. For one thread.
class WordCounts {
 public:
  /// No words yet; prune() leaves at most `max_words` different ones.
  explicit WordCounts(std::size_t max_words) : max_words_(max_words) {}

  /// Adds `count` occurrences of `word`.
  void add(std::string_view word, std::uint64_t count = 1);
  /// Forgets the rarest words if there are more than the maximum. The result depends on where this
  /// is called, so it is called at places that depend on the text alone.
  void prune();

  /// All words: the most frequent first, equal ones in the order of their bytes.
  std::vector<CountedWord> sorted() const;
  /// Number of different words.
  std::size_t size() const { return counts_.size(); }
  /// A word that was forgotten occurred at most so often up to then; 0 if none was.
  std::uint64_t forgotten() const { return forgotten_; }

  /// Calls `use`(word, count) for all words, in no order.
  template <class F>
  void each(F use) const {
    for (const auto& [word, count] : counts_) use(word, count);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> counts_;
  std::size_t max_words_;
  std::uint64_t forgotten_ = 0;
};

// Training.

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
