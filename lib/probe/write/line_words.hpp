// Words of a line, with their tokens, and how a tokenizer reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe/score/sentence.hpp"
#include "probe/score/word_scores.hpp"

namespace masque::probe {

/// The code points of `text`, up to the first byte that is not UTF-8.
std::u32string characters(std::string_view text);

/// Whether `text` has a character that Unicode calls a letter.
bool has_letter(std::u32string_view text);
/// Whether `text` has white space.
bool has_white_space(std::u32string_view text);

/// What the tokens `ids` of `tokenizer` look like in a text, without white space at the ends: that
/// may belong to the first.
std::string shown(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids);

/// `word` of a text as the normalizer of `tokenizer` leaves it, also where its tokens do not show
/// that ([UNK]).
std::string normalized(const text::Tokenizer& tokenizer, std::string_view word);

/// The words of `text`, from left to right; none overlap. `sentence` are its tokens, with spans. A
/// word is a pre-token, cut where white space is in front of a token (pre-tokenizers that do not
/// split at spaces). Of one character that was read as several words (U+FDFB by NFKC) these are
/// one. Tokens are numbers of the sentence's ids.
std::vector<WordTokens> words_apart(const Sentence& sentence, std::string_view text);

/// The tokens of `sentence` for the part `place`, in bytes, of its line `text`: those that share a
/// character with it, and, of the same pre-token, those in front of them that have none. Numbers of
/// the sentence's ids; perhaps none.
WordTokens tokens_of(const Sentence& sentence, std::string_view text, text::Stretch place);

/// `text` with a capital in front where the word `in_line` begins with one (A to Z) and the
/// tokenizer has lowered it: `as_read`.
std::string in_case(std::string text, std::string_view in_line, std::string_view as_read);

}  // namespace masque::probe
