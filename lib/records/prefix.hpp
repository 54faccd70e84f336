// Sequence-to-sequence objectives in one sequence. UniLM, Dong et al. 2019, arXiv:1905.03197.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

/// What make_prefix draws.
struct PrefixOptions {
  double low = 0.2;   ///< the source's share of the sequence, uniform in [low, high]
  double high = 0.8;  ///< see low
  /// Weights of the objectives bidirectional, seq2seq, left to right, right to left; one is drawn
  /// for each record. UniLM: 1/3, 1/3, 1/6, 1/6.
  std::array<double, 4> mix = {0, 1, 0, 0};
  std::uint64_t seed = 0;  ///< the same seed draws the same
};

/// Draws an objective for each record as `options` say. Sets `mask`, for seq2seq `seg` (0 source, 1
/// target), and `labels`: the next token (of the target only for seq2seq), the one before for right
/// to left. Bidirectional records have the mask `full` and are passed on to `bidirectional`, which
/// adds their labels; without it they get none. Throws UsageError for shares that are not from 0 to
/// 1 and rising, and for weights below 0 or all 0. apply() throws InputError for a record that has
/// labels, a mask or segments.
std::unique_ptr<Corruption> make_prefix(const PrefixOptions& options,
                                        std::unique_ptr<Corruption> bidirectional = nullptr);

}  // namespace masque::records
