// Perplexity of a corpus.
#pragma once

#include "probe/moments.hpp"
#include "probe/text_scorer.hpp"

namespace masque::probe {

/// Sums over the sentences of a corpus, in parts that add up.
struct Perplexity {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;  ///< of the text, without line ends
  Moments tokens;           ///< of the log-probabilities of scored tokens, nats

  void add(const ScoredSentence& sentence, std::uint64_t text_bytes);
  void add(const Perplexity& other);
  /// exp(−Σ log p / tokens); NaN without tokens. With a masked kind the pseudo-perplexity of
  /// Salazar 2020, arXiv:1910.14659, eq. 4.
  double per_token() const;
  /// −Σ log₂ p / bytes; NaN without bytes.
  double bits_per_byte() const;
};

}  // namespace masque::probe
