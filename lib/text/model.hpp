// Models of Hugging Face's tokenizer.json (WordPiece, BPE, Unigram, WordLevel), one file each under
// text/model/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::text {

/// A token of a word: its id, and the bytes of the word that it covers.
struct Piece {
  TokenId id = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool operator==(const Piece&) const = default;
};

/// A vocabulary and the way in which a word is cut into its tokens. Immutable and thread-safe.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Appends the tokens of one word (the output of the pre-tokenizer, valid UTF-8). Time
  /// O(length · log length) at most, for any word. Throws InputError if a token is needed that the
  /// vocabulary lacks.
  virtual void tokenize(std::string_view word, std::vector<Piece>& out) const = 0;

  /// Number of ids; ids without a token (gaps) count.
  virtual std::size_t size() const = 0;
  /// The id of a token.
  virtual std::optional<TokenId> find(std::string_view token) const = 0;
  /// The token of an id; empty for a gap or an id out of range.
  virtual std::string_view token(TokenId id) const = 0;
};

}  // namespace masque::text
