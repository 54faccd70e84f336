// Tokens that are found in the text before it is cut into words.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/model/model.hpp"
#include "text/step/normalizer.hpp"

namespace masque::text {

/// An entry of "added_tokens".
struct AddedToken {
  TokenId id = -1;           ///< what the file says; -1: nothing
  std::string content;       ///< the token, as the file spells it
  bool single_word = false;  ///< only between characters that are no part of a word
  bool lstrip = false;       ///< takes the white space on its left
  bool rstrip = false;       ///< and on its right
  bool normalized = false;   ///< found in the normalised text, not in the raw one
  bool special = false;      ///< decoding can leave it out; see EncodeOptions::special_in_text
  std::string shown;  ///< filled by AddedTokens: the content as decoding shows it, normalised
  bool found = true;  ///< false: only a name, never found in text
};

/// Finds the longest of a few texts at a place.
class TextTrie {
 public:
  /// Adds `text` with the number `value` that matches of it have. Empty texts are left out; of
  /// equal texts the first counts.
  void add(std::string_view text, std::size_t value);
  /// Whether there is no text to find.
  bool empty() const { return nodes_.size() == 1; }

  /// A place where one of the texts stands.
  struct Match {
    std::size_t begin = 0;  ///< its first byte
    std::size_t end = 0;    ///< one past its last byte
    std::size_t value = 0;  ///< of the text, as add() got it
  };
  /// `match` ← the leftmost longest match in `text` at or after byte `from`; false if there is
  /// none. Cost O(bytes to the match · longest text).
  bool find(std::string_view text, std::size_t from, Match& match) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, std::uint32_t>> children;
    std::int64_t value = -1;
  };
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::uint32_t, 256> first_{};  ///< child of the root; 0: none
  int first_count_ = 0;
  unsigned char only_first_ = 0;
};

/// The added tokens of a tokenizer. Immutable and thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// Gives `tokens` ids as Hugging Face does: those of the vocabulary of `model`, else the next
  /// free one in the order of the list, whatever the file says; a difference is reported in
  /// `warnings`. Contents that are found in normalised text are normalised by `normalizer`, which
  /// may be nullptr. Of equal contents the first counts; empty ones are left out. Does not keep the
  /// arguments.
  AddedTokens(std::vector<AddedToken> tokens, const TokenModel& model, const Normalizer* normalizer,
              std::vector<std::string>& warnings);

  /// A stretch of a text: an added token, or text between two.
  struct Part {
    std::size_t begin = 0;              ///< first byte
    std::size_t end = 0;                ///< one past the last byte
    const AddedToken* token = nullptr;  ///< nullptr: text; else valid as long as the AddedTokens
  };
  /// `out` ← the stretches of `text`, which is raw (`normalized` false) or normalised. Without
  /// `special_in_text`, special tokens are ordinary text. Cost O(length · longest content).
  void split(std::string_view text, bool normalized, bool special_in_text,
             std::vector<Part>& out) const;
  /// Whether split() with the same `normalized` can find anything.
  bool any(bool normalized) const { return !(normalized ? cooked_ : raw_).empty(); }

  /// All of them, in the order of the list, with their ids.
  const std::vector<AddedToken>& tokens() const { return tokens_; }
  /// The token of `id`; nullptr if no added token has it.
  const AddedToken* find(TokenId id) const;
  /// The token of this `content`; nullptr if there is none.
  const AddedToken* find(std::string_view content) const;
  /// Whether there is a special token of this `content`.
  bool is_special(std::string_view content) const;
  /// One more than the highest id; 0 without tokens.
  std::size_t end_of_ids() const;

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
  TextTrie raw_;
  TextTrie cooked_;
};

}  // namespace masque::text
