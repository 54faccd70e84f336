#include "evaluate/score/length_policy.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"

namespace masque::evaluate {

namespace {

constexpr std::string_view kSlide = "slide:";

std::vector<Window> slide(Index tokens, Index capacity, Index stride, bool left_only) {
  std::vector<Window> windows;
  for (Index begin = 0;; begin += stride) {
    const Index end = std::min(tokens, begin + capacity);
    // Half of what two windows share is nearer to the middle of the one, half to that of the other.
    Index from = 0;
    if (!windows.empty()) {
      Window& before = windows.back();
      from = left_only ? before.end : begin + (before.end - begin + 1) / 2;
      before.score_end = from;
    }
    windows.push_back({begin, end, from, end});
    if (end == tokens) return windows;
  }
}

}  // namespace

LengthPolicy parse_length_policy(std::string_view text, std::string_view expected) {
  if (text == "error") return {};
  if (text == "skip") return {LengthPolicy::Kind::kSkip, 0};
  if (text == "chunk") return {LengthPolicy::Kind::kChunk, 0};
  if (text == "first" || text == "truncate") return {LengthPolicy::Kind::kFirst, 0};
  if (text == "last") return {LengthPolicy::Kind::kLast, 0};
  if (text.starts_with(kSlide)) {
    const auto stride = parse_unsigned(text.substr(kSlide.size()));
    if (stride && *stride >= 1 && *stride <= INT32_MAX)
      return {LengthPolicy::Kind::kSlide, static_cast<Index>(*stride)};
  }
  throw UsageError(
      fmt::format("{}: found '{}', expected {}", field("policy"), escape(text), expected));
}

std::string too_long(Index tokens, Index limit) {
  return fmt::format("{} tokens, expected at most {} (see {})", tokens, limit, field("policy"));
}

std::string all_too_long(std::string_view what, Index limit) {
  return fmt::format("all {} have more than {} tokens (see {})", what, limit, field("policy"));
}

std::string policy_text(const LengthPolicy& policy) {
  switch (policy.kind) {
    case LengthPolicy::Kind::kError: return "error";
    case LengthPolicy::Kind::kSkip: return "skip";
    case LengthPolicy::Kind::kChunk: return "chunk";
    case LengthPolicy::Kind::kSlide: return fmt::format("slide:{}", policy.stride);
    case LengthPolicy::Kind::kFirst: return "first";
    case LengthPolicy::Kind::kLast: break;
  }
  return "last";
}

std::optional<Index> token_limit(const model::Design& design, Index max_length) {
  const Index model = design.max_position_embeddings;
  if (max_length == 0) return model == 0 ? std::nullopt : std::optional(model);
  if (model != 0 && max_length > model) {
    throw UsageError(fmt::format("{} {}, expected at most {}, the model's maximum length",
                                 field("max_length"), max_length, model));
  }
  return max_length;
}

void check_stride(const LengthPolicy& policy, Index capacity) {
  if (policy.kind != LengthPolicy::Kind::kSlide ||
      (policy.stride >= 1 && policy.stride <= capacity))
    return;
  throw UsageError(
      fmt::format("{} slide:{}, expected a stride from 1 to {}, the tokens that fit in a window",
                  field("policy"), policy.stride, capacity));
}

std::vector<Window> cut_windows(Index tokens, Index capacity, const LengthPolicy& policy,
                                bool left_only) {
  MASQUE_CHECK(capacity >= 1 && tokens >= 0);
  check_stride(policy, capacity);
  if (tokens <= capacity) return {{0, tokens, 0, tokens}};
  switch (policy.kind) {
    case LengthPolicy::Kind::kSlide: return slide(tokens, capacity, policy.stride, left_only);
    case LengthPolicy::Kind::kFirst: return {{0, capacity, 0, capacity}};
    case LengthPolicy::Kind::kLast: return {{tokens - capacity, tokens, tokens - capacity, tokens}};
    case LengthPolicy::Kind::kError:
    case LengthPolicy::Kind::kSkip:
    case LengthPolicy::Kind::kChunk: break;
  }
  MASQUE_CHECK(policy.kind == LengthPolicy::Kind::kChunk);
  std::vector<Window> windows;
  windows.reserve(static_cast<std::size_t>(divide_up(tokens, capacity)));
  for (Index begin = 0; begin < tokens; begin += capacity) {
    const Index end = std::min(tokens, begin + capacity);
    windows.push_back({begin, end, begin, end});
  }
  return windows;
}

}  // namespace masque::evaluate
