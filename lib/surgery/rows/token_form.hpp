// What a token writes, independent of how its vocabulary spells it: "▁the", "Ġthe" and WordPiece's
// "the" write the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {

/// What a token writes in the middle of a text.
struct TokenForm {
  std::string text;   ///< bytes, perhaps not UTF-8; with a space in front where a word begins
  bool byte = false;  ///< a token of byte fallback, "<0xC3>": the byte where no other token has it
  /// No text gives the token: "##," where punctuation is always split off.
  bool unused = false;
  bool operator==(const TokenForm&) const = default;
};

/// The bytes that `token` of a byte-level vocabulary stands for; nothing if one of its characters
/// stands for none.
std::optional<std::string> byte_level_bytes(std::string_view token);
/// The byte of a piece of byte fallback, "<0xC3>"; nothing for any other token.
std::optional<unsigned char> fallback_byte(std::string_view token);

/// The forms of a tokenizer's tokens, and the tokens of a form. For one thread.
class TokenForms {
 public:
  /// `tokenizer` must outlive it and stay where it is.
  explicit TokenForms(const text::Tokenizer& tokenizer);

  /// What the token of `id`, spelled `token`, writes; the first is the usual one. Several where the
  /// tokenizer makes the same token after a space and without one: WordPiece's punctuation, tokens
  /// without marks. Where ends of words are marked ("the</w>"), nothing tells beginnings from
  /// continuations: what ends a word is first taken for a whole one, " the", what does not for a
  /// continuation. Empty for special tokens.
  std::vector<TokenForm> of(TokenId id, std::string_view token) const;

  /// What the new token `token`, which a user spells, would write: "##ing" is "ing", and "Ġthe",
  /// "▁the" are " the" where these marks stand for a space. A token without a mark continues a word
  /// unless the tokenizer marks continuations, or puts the mark of a word in front of what is found
  /// in a text (normalizer "Prepend").
  std::string text_of_new(std::string_view token) const;

  /// Tokens that write a text.
  struct Pieces {
    std::vector<std::uint64_t> ids;  ///< unknown tokens among them
    bool known = true;               ///< false: an unknown token is among them, or one is missing
  };
  /// The tokens that the tokenizer makes of `text` in the middle of a text: a word begins only
  /// where `text` has a space, whatever the tokenizer puts in front of whole texts. Bytes that are
  /// not UTF-8 get the tokens of bytes. Throws as Tokenizer::encode.
  Pieces pieces(std::string_view text) const;

 private:
  bool is_split_off(std::string_view word) const;
  void add_words(std::string_view text, Pieces& out) const;
  void add_part(const text::AlignedText& part, std::string_view text, Pieces& out) const;
  void add_word(std::string_view word, bool continues, Pieces& out) const;
  void add_id(TokenId id, Pieces& out) const;

  const text::Tokenizer& tokenizer_;
  bool bytes_ = false;     ///< characters stand for bytes
  bool words_ = false;     ///< every token is a word
  bool prepends_ = false;  ///< the normalizer puts the mark of a word in front
};

}  // namespace masque::surgery
