// The tokens of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "text/step/aligned_text.hpp"

namespace masque::text {

/// The word of a template's token: none.
inline constexpr std::uint32_t kNoWord = UINT32_MAX;

/// Tokens with all that is known about them: vectors of equal length.
struct Encoding {
  std::vector<TokenId> ids;             ///< in the order of the text
  std::vector<std::string> tokens;      ///< their spelling
  std::vector<Span> offsets;            ///< in the text, see OffsetUnit; (0, 0) for template tokens
  std::vector<std::uint32_t> type_ids;  ///< segment: 0, 1 for the second text
  std::vector<std::uint8_t> special;    ///< 1: put there by the template
  std::vector<std::uint32_t> words;  ///< pre-token of the text, from 0, as transformers' word_ids

  /// Number of tokens.
  std::size_t size() const { return ids.size(); }
  /// Appends the token `id` with its spelling `token` and an element `offset`, `type_id`,
  /// `is_special` and `word` of the other vectors.
  void push_back(TokenId id, std::string token, Span offset, std::uint32_t type_id, bool is_special,
                 std::uint32_t word = kNoWord);
  /// Appends the tokens of `other` as they are: offsets and words are not moved.
  void append(const Encoding& other);
  /// Keeps `count` tokens: the first ones, or the last ones if `from_left` are cut.
  void truncate(std::size_t count, bool from_left);
};

}  // namespace masque::text
