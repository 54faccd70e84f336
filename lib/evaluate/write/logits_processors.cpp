#include "evaluate/write/logits_processors.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

constexpr double kExcluded = -std::numeric_limits<double>::infinity();

double& score_of_token(TokenId id, std::span<double> scores) {
  return scores[static_cast<std::size_t>(id)];
}

void exclude(std::span<const TokenId> ids, std::span<double> scores) {
  for (const TokenId id : ids) {
    if (id < std::ssize(scores)) score_of_token(id, scores) = kExcluded;
  }
}

/// Only `ids` remain, and are certain.
void force(std::span<const TokenId> ids, std::span<double> scores) {
  std::ranges::fill(scores, kExcluded);
  for (const TokenId id : ids) score_of_token(id, scores) = 0;
}

void penalize_repetition(double penalty, std::span<const TokenId> ids, std::span<double> scores) {
  std::vector<TokenId> once(ids.begin(), ids.end());
  std::ranges::sort(once);
  const auto repeated = std::ranges::unique(once);
  once.erase(repeated.begin(), repeated.end());
  for (const TokenId id : once) {
    // The input table may have more rows than the head.
    if (id >= std::ssize(scores)) continue;
    double& score = score_of_token(id, scores);
    score = score < 0 ? score * penalty : score / penalty;
  }
}

/// Excludes what followed the last `size` − 1 tokens before.
void exclude_repeated_ngrams(Index size, std::span<const TokenId> ids, std::span<double> scores) {
  const Index count = std::ssize(ids);
  if (size <= 0 || count < size) return;
  const auto before = static_cast<std::size_t>(size) - 1;
  const auto suffix = ids.last(before);
  for (std::size_t i = 0; i + before < ids.size(); ++i) {
    if (std::ranges::equal(ids.subspan(i, before), suffix))
      exclude(ids.subspan(i + before, 1), scores);
  }
}

void exclude_bad_words(std::span<const std::vector<TokenId>> words, const TextSoFar& text,
                       std::span<double> scores) {
  for (const std::vector<TokenId>& word : words) {
    const auto begin = std::span(word).first(word.size() - 1);
    const std::span<const TokenId> last(&word.back(), 1);
    if (begin.empty() && std::ranges::find(text.ends, word.back()) != text.ends.end()) continue;
    if (begin.size() > text.ids.size()) continue;
    if (std::ranges::equal(text.ids.last(begin.size()), begin)) exclude(last, scores);
  }
}

}  // namespace

void check_logits_processors(const LogitsProcessors& processors, Index vocabulary) {
  const auto check = [&](std::string_view name, std::span<const TokenId> ids) {
    for (const TokenId id : ids) {
      if (id < vocabulary) continue;
      throw InputError(
          fmt::format("{} {}: not in the vocabulary of {} tokens", field(name), id, vocabulary));
    }
  };
  const auto check_forced = [&](std::string_view name, std::span<const TokenId> ids) {
    check(name, ids);
    if (!processors.suppress_tokens) return;
    const std::vector<TokenId>& never = *processors.suppress_tokens;
    const bool left = std::ranges::any_of(
        ids, [&](TokenId id) { return std::ranges::find(never, id) == never.end(); });
    if (left) return;
    throw InputError(fmt::format("{} {}: also in {}, so that no token is left", field(name),
                                 fmt::join(ids, ","), field("suppress_tokens")));
  };
  if (processors.forced_bos_token_id) {
    const auto id = static_cast<TokenId>(*processors.forced_bos_token_id);
    check_forced("forced_bos_token_id", std::span(&id, 1));
  }
  if (processors.forced_eos_token_id)
    check_forced("forced_eos_token_id", *processors.forced_eos_token_id);
  if (!processors.bad_words_ids) return;
  for (const std::vector<TokenId>& word : *processors.bad_words_ids) check("bad_words_ids", word);
}

void process_logits(const LogitsProcessors& processors, const TextSoFar& text,
                    std::span<double> scores) {
  const Index length = std::ssize(text.ids);
  if (processors.repetition_penalty)
    penalize_repetition(*processors.repetition_penalty, text.ids, scores);
  if (processors.no_repeat_ngram_size)
    exclude_repeated_ngrams(*processors.no_repeat_ngram_size, text.ids, scores);
  if (processors.bad_words_ids) exclude_bad_words(*processors.bad_words_ids, text, scores);
  const Index shortest = processors.min_new_tokens ? text.prompt + *processors.min_new_tokens
                                                   : processors.min_length.value_or(0);
  if (length < shortest) exclude(text.ends, scores);
  const bool forces_begin = processors.forced_bos_token_id && text.prompt == 1;
  if (forces_begin && length == 1) {
    const auto id = static_cast<TokenId>(*processors.forced_bos_token_id);
    force(std::span(&id, 1), scores);
  }
  if (processors.forced_eos_token_id && text.last) force(*processors.forced_eos_token_id, scores);
  if (processors.suppress_tokens) exclude(*processors.suppress_tokens, scores);
  if (processors.begin_suppress_tokens && length == text.prompt + (forces_begin ? 1 : 0))
    exclude(*processors.begin_suppress_tokens, scores);
}

}  // namespace masque::evaluate
