// A sequence as a model gets it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "mask/mask.hpp"
#include "model/design.hpp"
#include "text/aligned_text.hpp"

namespace masque::probe {

/// Ids of a text or of a record, and what stands next to them.
struct Sequence {
  std::uint64_t number = 0;  ///< of its line, from 0
  std::vector<TokenId> ids;
  std::vector<Index> segments;   ///< token types; empty: 0
  std::vector<Index> positions;  ///< empty: 0, 1, …
  std::vector<Index> labels;     ///< of a record, −100: none; empty: it has none
  /// In place of the model's; of two-stream models what the query stream may read, while the
  /// content stream also reads itself.
  std::optional<mask::Mask> mask;
  std::vector<std::string> pieces;  ///< of the tokens, if they were text; else empty
  std::vector<text::Span> spans;    ///< places of the tokens in the text, in bytes; else empty
  Index prefix = 0;                 ///< tokens of the tokenizer's template in front of the text
  Index suffix = 0;                 ///< and after it

  Index size() const { return static_cast<Index>(ids.size()); }
};

/// Throws InputError for a mask in a model of two streams, where it would be the mask of one.
void check_one_stream(const Sequence& sequence, const model::Design& design);

}  // namespace masque::probe
