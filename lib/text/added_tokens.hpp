// Tokens that are found in the text before it is cut into words.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/model.hpp"
#include "text/normalizer.hpp"

namespace masque::text {

/// An entry of "added_tokens".
struct AddedToken {
  TokenId id = -1;  ///< what the file says; -1: nothing
  std::string content;
  bool single_word = false;  ///< only between characters that are no part of a word
  bool lstrip = false;       ///< takes the white space on its left
  bool rstrip = false;       ///< and on its right
  bool normalized = false;   ///< found in the normalised text, not in the raw one
  bool special = false;
  std::string shown;  ///< filled by AddedTokens: the content as decoding shows it, normalised
  bool found = true;  ///< false: only a name, never found in text
};

/// Finds the longest of a few texts at a place.
class TextTrie {
 public:
  /// Empty texts are left out; of equal texts the first counts.
  void add(std::string_view text, std::size_t value);
  bool empty() const { return nodes_.size() == 1; }

  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t value = 0;
  };
  /// The leftmost longest match at or after `from`; false if there is none.
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
  /// Gives ids as Hugging Face does: those of the model's vocabulary, else the next free one in the
  /// order of the list, whatever the file says; a difference is reported in `warnings`.
  AddedTokens(std::vector<AddedToken> tokens, const TokenModel& model, const Normalizer* normalizer,
              std::vector<std::string>& warnings);

  /// A stretch of a text: an added token, or text between two.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    const AddedToken* token = nullptr;
  };
  /// Cuts raw text (`normalized` false) or normalised text. Without `special_in_text`, special
  /// tokens are ordinary text. Cost O(length · longest content).
  void split(std::string_view text, bool normalized, bool special_in_text,
             std::vector<Part>& out) const;
  /// Whether split() can find anything.
  bool any(bool normalized) const { return !(normalized ? cooked_ : raw_).empty(); }

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  /// The token of an id; nullptr if no added token has it.
  const AddedToken* find(TokenId id) const;
  /// The token of this content.
  const AddedToken* find(std::string_view content) const;
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
