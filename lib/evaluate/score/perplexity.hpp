// Perplexity of a corpus.
#pragma once

#include "evaluate/score/text_scorer.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// Number of bytes of the text of `sentence` that belong to the scored tokens. A token's bytes run
/// from the end of the token before it, or the start of the text, to its own end; the last token
/// also has the rest of the text. If all tokens are scored, or there are none, this is the whole
/// text.
std::uint64_t scored_bytes(const ScoredSentence& sentence);

/// Sums over the sentences of a corpus, in parts that add up.
struct Perplexity {
  std::uint64_t lines = 0;  ///< sentences
  std::uint64_t bytes = 0;  ///< size of the text that was scored, without line ends
  Moments tokens;           ///< log-probabilities of scored tokens, nats
  /// For a kind that draws: the variance of their sum (ScoredSentence::score_variance).
  std::optional<double> score_variance = {};

  /// Adds `sentence`.
  void add(const ScoredSentence& sentence);
  /// Adds the sums of `other`.
  void add(const Perplexity& other);
  /// exp(−Σ log p / tokens); NaN without tokens. With a masked kind the pseudo-perplexity of
  /// Salazar 2020, arXiv:1910.14659, eq. 4.
  double per_token() const;
  /// Standard error of per_token() from score_variance, to first order; NaN without tokens.
  double standard_error() const;
  /// −Σ log₂ p / bytes; NaN without bytes.
  double bits_per_byte() const;
};

}  // namespace masque::evaluate
