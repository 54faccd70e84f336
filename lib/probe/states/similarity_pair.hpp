// Two sentences and a human judgement of their similarity.
#pragma once

#include <string_view>

namespace masque::probe {

/// Views of the line that was read.
struct SimilarityPair {
  double score = 0;  ///< finite
  std::string_view first;
  std::string_view second;
};

/// Reads "score TAB sentence TAB sentence". Throws InputError "what was found", without the line's
/// number.
SimilarityPair parse_similarity_pair(std::string_view line);

}  // namespace masque::probe
