// A batch in pieces that one thread, or all of them, take through the whole model.
#pragma once

#include <span>
#include <vector>

#include "model/model.hpp"

namespace masque::model {

/// Some sequences of a batch, one after the other. Rows count from the first of the chunk.
struct Chunk {
  Index first_sequence = 0;   ///< in the batch
  Index first_row = 0;        ///< in the batch
  Index rows = 0;             ///< tokens of its sequences
  std::vector<Index> begins;  ///< the first row of each sequence, and the end
  /// Rows whose last states are wanted, ascending; those of sequence s are
  /// [wanted_begins[s], wanted_begins[s + 1]).
  std::vector<Index> wanted;
  std::vector<Index> wanted_begins;  ///< one a sequence, and the end
  Index first_wanted = 0;            ///< place of the first in the request's rows

  /// Number of its sequences.
  Index sequences() const { return static_cast<Index>(begins.size()) - 1; }
};

/// The part of sequence `sequence` in `values` of all rows; nothing of no values. `begins`: the
/// first rows of the sequences, and the end. The result is a view into `values`.
std::span<const Index> of_sequence(std::span<const Index> values, std::span<const Index> begins,
                                   Index sequence);

/// How to run the chunks.
struct ChunkPlan {
  std::vector<Chunk> chunks;  ///< in the order of the batch; together all its sequences
  /// Each chunk on one thread, several at a time; else one after the other, each on all threads.
  bool parallel = false;
};

/// Cuts `batch` between sequences, for `threads` threads. `wanted` are rows of the batch,
/// ascending. Results never depend on the cut.
ChunkPlan cut_batch(const Batch& batch, std::span<const Index> wanted, int threads);

}  // namespace masque::model
