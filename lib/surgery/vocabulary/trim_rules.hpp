// What a tokenizer's model needs besides the tokens that a smaller vocabulary is to have, so that
// texts of these tokens are still tokenized the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// The two parts of `merge`, an item of "merges" of tokenizer.json: "a b" or ["a", "b"]. Nothing
/// for anything else. Views into it.
std::optional<std::pair<std::string_view, std::string_view>> merge_parts(const JsonValue& merge);
/// The two parts of a `line` of merges.txt; nothing for its head and for empty lines.
std::optional<std::pair<std::string_view, std::string_view>> merge_parts(std::string_view line);
/// What the merge of `left` and `right` makes; `continuing` is the prefix that a right part loses.
std::string merged(std::string_view left, std::string_view right, std::string_view continuing);

/// The rules of one tokenizer. Immutable.
class TrimRules {
 public:
  /// Of the tokenizer in the folder of `state`: the merges of tokenizer.json, else of merges.txt,
  /// and the scores of a Unigram model; of a GGUF file its merges. Throws InputError for a file
  /// that is not what it must be.
  explicit TrimRules(const VocabularyState& state);

  /// Whether tokens are made by merges.
  bool has_merges() const { return !merges_.empty(); }
  /// The tokens that merges pass through from characters to the token of `row`, without itself;
  /// empty if no merges make it. No symbol is ever split, so a token of a text comes from its own
  /// characters alone: a text whose tokens and their paths all stay has the same tokens without
  /// the other merges. Cost O(characters²). Throws InputError for more than 4096 characters.
  std::vector<std::uint64_t> path_of(std::uint64_t row) const;

  /// The row of the token that stands for `byte` alone: of a byte-level vocabulary its character,
  /// else the piece of byte fallback; nothing if there is none.
  std::optional<std::uint64_t> byte_row(unsigned char byte) const { return bytes_[byte]; }
  /// Whether byte_row() are pieces of byte fallback, for characters that are no tokens.
  bool has_byte_fallback() const { return fallback_; }
  /// The row of the piece with the lowest score of a Unigram model, which sets the cost of an
  /// unknown character.
  std::optional<std::uint64_t> lowest_piece() const { return lowest_; }

 private:
  struct Merge {
    std::uint64_t rank = 0;
    std::uint64_t made = 0;
  };

  void read_tokenizer_json(const std::string& path);
  void read_merges_txt(const std::string& path);
  void read_gguf(const store::Checkpoint& checkpoint);
  void add_merge(std::string_view left, std::string_view right);
  void find_bytes(bool byte_level);

  const TokenNames& names_;
  std::uint64_t rows_;
  std::string prefix_;  ///< of all characters but the first of a word
  std::string suffix_;  ///< of the last character of a word
  std::uint64_t rank_ = 0;
  std::unordered_map<std::uint64_t, Merge> merges_;  ///< by left · 2^32 + right
  std::array<std::optional<std::uint64_t>, 256> bytes_;
  bool fallback_ = false;
  std::optional<std::uint64_t> lowest_;
};

/// A note about tokens of bytes of `rules` that are not among the rows `chosen`: which characters
/// no text can be written with any more; empty if there are none.
std::string lost_bytes_note(const TrimRules& rules, const std::vector<bool>& chosen);

}  // namespace masque::surgery
