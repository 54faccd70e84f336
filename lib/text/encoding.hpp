// The tokens of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "text/aligned_text.hpp"

namespace masque::text {

/// The word of a template's token.
inline constexpr std::uint32_t kNoWord = UINT32_MAX;

/// Tokens with all that is known about them: vectors of equal length.
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;
  std::vector<Span> offsets;            ///< place in the text; (0, 0) for tokens of a template
  std::vector<std::uint32_t> type_ids;  ///< segment: 0, 1 for the second text
  std::vector<std::uint8_t> special;    ///< 1: put there by the template
  std::vector<std::uint32_t> words;  ///< pre-token of the text, from 0, as transformers' word_ids

  std::size_t size() const { return ids.size(); }
  void push_back(TokenId id, std::string token, Span offset, std::uint32_t type_id, bool is_special,
                 std::uint32_t word = kNoWord);
  void append(const Encoding& other);
  /// Keeps `count` tokens: the first ones, or the last ones if `from_left` are cut.
  void truncate(std::size_t count, bool from_left);
};

}  // namespace masque::text
