// What happens to a text that is longer than a model reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"

namespace masque::probe {

/// A text too long is refused, cut into pieces, read through windows, or shortened.
struct LengthPolicy {
  enum class Kind {
    kError,
    kChunk,  ///< disjoint pieces, each read alone
    kSlide,  ///< windows every `stride` tokens; each token is scored once
    kFirst,  ///< only the first tokens are read
    kLast,   ///< only the last tokens are read (a length stream: of every piece)
  };
  Kind kind = Kind::kError;
  Index stride = 0;
};

/// "error", "chunk", "slide:64", "first", "last". Throws UsageError about `policy`.
LengthPolicy parse_length_policy(std::string_view text);
std::string policy_text(const LengthPolicy& policy);

/// Tokens that a model reads at once: `max_length`, or with 0 as many as it can; nothing if it has
/// no limit. Throws UsageError about `max_length` for more than it can.
std::optional<Index> token_limit(const model::Design& design, Index max_length);

/// Throws UsageError about `policy` if windows of `capacity` (≥ 1) tokens would leave some out.
void check_stride(const LengthPolicy& policy, Index capacity);

/// Tokens [begin, end) of a text that are read together; those in [score_begin, score_end) are
/// scored with them.
struct Window {
  Index begin = 0;
  Index end = 0;
  Index score_begin = 0;
  Index score_end = 0;
};

/// The windows of a text of `tokens` tokens where at most `capacity` (≥ 1) fit at once. Windows of
/// kSlide begin at 0, stride, 2 stride …; a token in several of them is scored where it has the
/// most context: with `left_only` on its left, so in the first of them; else on the side where it
/// has less of it. Throws as check_stride; kError is up to the caller.
std::vector<Window> cut_windows(Index tokens, Index capacity, const LengthPolicy& policy,
                                bool left_only);

}  // namespace masque::probe
