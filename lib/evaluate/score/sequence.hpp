// A token sequence as it is given to a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "mask/mask.hpp"
#include "model/design.hpp"
#include "text/step/aligned_text.hpp"

namespace masque::evaluate {

/// Token ids of a text or of a record, with their segments, positions, labels and mask.
struct Sequence {
  std::uint64_t number = 0;      ///< number of its line, from 0
  std::vector<TokenId> ids;      ///< those of the template included
  std::vector<Index> segments;   ///< token types; empty: 0
  std::vector<Index> positions;  ///< empty: 0, 1, …
  std::vector<TokenId> source;   ///< what the encoder of an encoder–decoder reads; else empty
  std::vector<text::Span> source_spans = {};  ///< byte offsets of its tokens, as `spans`
  std::vector<Index> labels;  ///< from a record; −100: no label; empty: the sequence has none
  /// Replaces the model's mask. In models of two streams it is what the query stream may read; the
  /// content stream also reads itself.
  std::optional<mask::Mask> mask;
  std::vector<std::string> pieces;  ///< texts of the tokens if they come from text; else empty
  std::vector<text::Span> spans;    ///< byte offsets of the tokens in the text; else empty
  Index prefix = 0;                 ///< tokens of the tokenizer's template in front of the text
  Index suffix = 0;                 ///< and after it

  /// Tokens, those of the template included.
  Index size() const { return static_cast<Index>(ids.size()); }
};

/// Throws InputError if `sequence` has its own mask and a model of `design` has two streams.
void check_one_stream(const Sequence& sequence, const model::Design& design);

// Masks that hide single tokens from all others.

/// A mask of `length` tokens in which no query reads the keys in `hidden`, except, with `self`,
/// each of them itself. Cost: O(length).
mask::Mask hiding(Index length, const std::vector<Index>& hidden, bool self);

}  // namespace masque::evaluate
