// How texts that are longer than the model's maximum length are treated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"

namespace masque::evaluate {

/// A text too long is refused, cut into pieces, read through windows, or shortened.
struct LengthPolicy {
  /// What is done with a text that is too long.
  enum class Kind {
    kError,  ///< it is refused
    kSkip,   ///< it is refused, and the caller goes on without it
    kChunk,  ///< disjoint pieces, each read alone
    kSlide,  ///< windows every `stride` tokens; each token is scored once
    kFirst,  ///< only the first tokens are read
    kLast,   ///< only the last tokens are read (in a length stream: of every piece)
  };
  Kind kind = Kind::kError;  ///< what is done
  Index stride = 0;          ///< tokens between the begins of windows; of kSlide alone
};

/// Reads `text`: "error", "skip", "chunk", "slide:64", "first" (or "truncate"), "last". Throws
/// UsageError about `policy`, which says what is `expected`.
LengthPolicy parse_length_policy(
    std::string_view text,
    std::string_view expected = "error, skip, chunk, slide:STRIDE, first or last");
/// The message about a text of `tokens` tokens where `limit` are read; it names the field `policy`.
std::string too_long(Index tokens, Index limit);
/// The message about a text of which all `what` ("lines") have more than `limit` tokens.
std::string all_too_long(std::string_view what, Index limit);
/// Whether `policy` refuses a text that is too long.
inline bool refuses_long(const LengthPolicy& policy) {
  return policy.kind == LengthPolicy::Kind::kError || policy.kind == LengthPolicy::Kind::kSkip;
}
/// The text that parse_length_policy() reads as `policy`.
std::string policy_text(const LengthPolicy& policy);

/// The maximum number of tokens in a sequence: `max_length`, or if that is 0 that of `design`; no
/// value if neither limits it. Throws UsageError about `max_length` if it exceeds the model's.
std::optional<Index> token_limit(const model::Design& design, Index max_length);

/// Throws UsageError about `policy` if windows of `capacity` (≥ 1) tokens would skip some tokens.
void check_stride(const LengthPolicy& policy, Index capacity);

/// Texts of which kFirst and kLast read only a part.
struct ShortenedTexts {
  std::uint64_t texts = 0;   ///< that are not read whole
  std::uint64_t tokens = 0;  ///< number of their tokens that were not read

  /// Counts a text of which `left_out` tokens are not read; 0: it is read whole.
  void add(Index left_out) {
    texts += left_out > 0 ? 1 : 0;
    tokens += static_cast<std::uint64_t>(left_out);
  }
};

/// Tokens [begin, end) of a text that are read together; those in [score_begin, score_end) are
/// scored with them.
struct Window {
  Index begin = 0;        ///< first token that is read
  Index end = 0;          ///< after the last one
  Index score_begin = 0;  ///< first token that is scored
  Index score_end = 0;    ///< after the last one
};

/// The windows of a text of `tokens` tokens by `policy`, at most `capacity` (≥ 1) each. Windows of
/// kSlide begin at 0, stride, 2 stride … A token in several windows is scored in the one that gives
/// it the most context: on its left with `left_only`, so in the first of them; else on the side
/// where it has less. Throws as check_stride. The caller handles what refuses_long().
std::vector<Window> cut_windows(Index tokens, Index capacity, const LengthPolicy& policy,
                                bool left_only);

}  // namespace masque::evaluate
