// One block row of attention: 64 queries of one head against all the keys that they see.
#pragma once

#include "nn/attention.hpp"
#include "nn/tile.hpp"

namespace masque::nn {

/// What the products take.
enum class Operands {
  kPlain,    ///< numbers as they are
  kRounded,  ///< numbers rounded to bfloat16
  kPairs,    ///< pairs of bfloat16 (tile_pairs.hpp); T is float
};

/// What a block row needs. Views are borrowed.
template <class T>
struct BlockRow {
  Index first_query = 0;                            ///< a multiple of 64
  MatrixView<const T> query;                        ///< (at most 64, head size)
  Operands operands = Operands::kPlain;             ///< what the products take
  tile::Strips<const T> key;                        ///< transposed, as operands
  tile::Strips<const T> value;                      ///< not transposed, as operands
  Index keys = 0;                                   ///< number of keys
  double scale = 1;                                 ///< of q·k
  const AttentionNormalizer* normalizer = nullptr;  ///< required
  const HeadBias<T>* bias = nullptr;                ///< nullptr: none
  const mask::BlockMap* blocks = nullptr;           ///< of the whole mask
  MatrixView<T> context;                            ///< (queries, value size)
  MatrixView<T> weights;  ///< (queries, keys), 0; or empty. Needs a single step.
  /// (queries): shift plus log of the divisor, −∞ at first; or empty. Only with weights.
  std::span<T> log_divisors;
  /// (queries, keys): times the temperature, −∞ at first; or empty. Only with weights.
  MatrixView<T> scores;
};

/// Fills the context, and the weights where wanted, of `row`. `step` is the number of key blocks
/// that it takes at once. Scratch memory is kept per thread.
template <class T>
void walk_block_row(const BlockRow<T>& row, Index step);

}  // namespace masque::nn
