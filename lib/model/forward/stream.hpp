// Rows of a chunk that go through the layers together.
#pragma once

#include <span>
#include <vector>

#include "base/types.hpp"
#include "model/design.hpp"

namespace masque::model {

/// Which rows a stream has.
enum class StreamKind {
  kContent,       ///< all rows of the chunk
  kSelectedRows,  ///< some rows, under the same masks: those whose states are wanted
  kQuery,         ///< XLNet's g: some rows, under query masks
};

/// How streams go through the layers.
enum class StreamFlow {
  kOneStream,  ///< every row reads every row that its mask allows
  /// Selected rows are a stream of their own. It starts from [MASK] or from the tokens, and reads
  /// the embeddings in every layer or in the first alone. T-TA: [MASK], and every layer.
  kSeparateQueries,
  kTwoStreams,  ///< XLNet: the content h, and g, whose rows start from one vector and read the
                ///< content
  kTowers,      ///< TwoTower: the content, and all rows once more in the layers of the second half
};

/// Where the rows of a stream stand; their states are kept by whoever runs the layers.
struct StreamRows {
  StreamKind kind = StreamKind::kContent;  ///< which rows they are
  std::vector<Index> begins;               ///< the first row of each sequence, and the end
  std::vector<Index> rows;                 ///< rows of the chunk; empty for kContent: all of them
  std::vector<Index> positions;            ///< position ids, one a row
  std::vector<Index> segments;             ///< token types, one a row; empty: all 0
  /// One a sequence: its last position plus 1; empty where no angles depend on it (text_lengths()).
  std::vector<Index> text_lengths;

  /// Number of rows.
  Index count() const { return begins.back(); }
  /// Number of sequences.
  Index sequences() const { return static_cast<Index>(begins.size()) - 1; }
  /// The first row of sequence `sequence`.
  Index begin(Index sequence) const { return begins[static_cast<std::size_t>(sequence)]; }
  /// Number of rows of sequence `sequence`.
  Index count(Index sequence) const { return begin(sequence + 1) - begin(sequence); }
};

/// StreamRows::text_lengths of `rows`, all rows of their sequences, in a model of `design`.
std::vector<Index> text_lengths(const Design& design, const StreamRows& rows);

/// The stream of `kind` of the `rows` of `content`, ascending; `begins`: the first of each sequence
/// among them, and the end.
StreamRows selected_rows(const StreamRows& content, StreamKind kind, std::span<const Index> rows,
                         std::span<const Index> begins);

}  // namespace masque::model
