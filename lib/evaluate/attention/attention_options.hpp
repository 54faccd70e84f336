// What statistics of attention take: options, and sequences with what is known of their tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "evaluate/attention/attention_head.hpp"
#include "evaluate/score/sequence.hpp"

namespace masque::evaluate {

/// What AttentionStats measures.
struct AttentionStatsOptions {
  Index batch_tokens = 8192;         ///< most tokens of a batch; a longer sentence runs alone
  HeadThresholds thresholds;         ///< thresholds of kSink and kNear
  std::uint64_t rank_sentences = 0;  ///< ranks of the first so many sentences
  std::vector<TokenId> tokens;       ///< the attention to each is measured: HeadTotals::tokens
  bool score_spread = false;         ///< HeadTotals::score_spread is wanted
  /// The fields that compare layers are wanted: three times the memory of maps.
  bool compares_layers = false;
  /// Attention of the decoder of an encoder–decoder to the source is measured, not its own.
  bool of_source = false;
};

/// A sequence with what is known of its tokens.
struct MarkedItem {
  Sequence sequence;  ///< sequence of at least one token
  /// One a token, of AttentionStatsOptions::of_source one a token of the source: 1 or 0; empty: not
  /// known.
  std::vector<std::uint8_t> special;
  std::vector<std::uint8_t> punctuation;  ///< likewise
};

}  // namespace masque::evaluate
