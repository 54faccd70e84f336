// Two sentences and a human judgement of their similarity.
#pragma once

#include <string_view>

namespace masque::evaluate {

/// Views of the line that was read.
struct SimilarityPair {
  double score = 0;         ///< finite
  std::string_view first;   ///< a sentence
  std::string_view second;  ///< the other one
};

/// Reads `line`: "score TAB sentence TAB sentence", without its end. Throws InputError "what was
/// found", without the line's number.
SimilarityPair parse_similarity_pair(std::string_view line);

}  // namespace masque::evaluate
