// Which tokens of a record are selected for prediction.
#pragma once

#include <span>

#include "records/corruption.hpp"

namespace masque::records {

/// What is selected together.
enum class Unit {
  kToken,  ///< each token alone
  kWord,   ///< by the tokenizer's marks: TokenTable::begins_word
  kWords,  ///< by the record's field `words`
};

/// How units are chosen.
enum class Choice {
  kBernoulli,  ///< each with probability `rate`
  kExact,      ///< in random order, until round(rate · n) tokens (at least 1) are selected
  kSpan,       ///< runs of units, lengths geometric: SpanBERT, arXiv:1907.10529
  kNgram,      ///< runs of 1 … 4 units with 40, 30, 20, 10 %: MacBERT, arXiv:2004.13922
};

/// What Selection selects.
struct SelectionOptions {
  double rate = 0.15;     ///< share of the ordinary tokens
  double rate_high = -1;  ///< a rate for each record, uniform in [rate, rate_high]; below 0: fixed
  Unit unit = Unit::kToken;            ///< what is selected together
  Choice choice = Choice::kBernoulli;  ///< how units are chosen
  double span_p = 0.2;                 ///< of the geometric lengths of kSpan, in (0, 1]
  std::uint64_t span_longest = 10;     ///< units of a span of kSpan, at most
  bool rounds_up = false;  ///< but for kBernoulli: ⌈rate · n⌉ tokens, where it is round(rate · n)
  std::uint64_t seed = 0;  ///< the same seed draws the same
};

/// How many of `ids` each word has, one after the other, by the marks of `tokens` as of
/// Unit::kWord; a special token is a word. Throws UsageError without marks.
std::vector<Index> word_lengths(std::span<const TokenId> ids, const TokenTable& tokens);

/// Selects tokens. Immutable, thread-safe.
class Selection {
 public:
  /// Copies `options`. Throws UsageError for rates and span lengths out of range, and for words
  /// that `tokens` do not mark.
  Selection(const SelectionOptions& options, const TokenTable& tokens);

  /// Fills scratch.flags with a flag for each token of `record`: 1 for selected tokens, 0 for
  /// others; special tokens of `tokens` never. Draws by the record's number and `epoch`. Counts
  /// `ordinary` and `selected` in `tally`. Throws InputError if the record lacks `words` that are
  /// needed.
  void select(const Record& record, std::uint64_t epoch, const TokenTable& tokens, Scratch& scratch,
              Tally& tally) const;

 private:
  struct Run {
    std::size_t begin;
    std::size_t end;
  };
  double rate_of(const Record& record, std::uint64_t epoch) const;
  std::vector<Run> units_of(const Record& record, const TokenTable& tokens) const;
  void select_runs(const std::vector<Run>& units, double rate, std::size_t ordinary, Draw& draw,
                   std::vector<std::uint8_t>& flags) const;
  std::size_t run_length(Draw& draw) const;

  SelectionOptions options_;
  std::uint64_t threshold_;
  RandomSource random_;
  RandomSource rates_;
};

}  // namespace masque::records
