// The sum of a model's tables, by rows of a stream.
#pragma once

#include <span>
#include <vector>

#include "model/design.hpp"
#include "model/forward/stream.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// Tables (entries, embedding size); without data: the model has none.
template <class T>
struct EmbeddingTables {
  MatrixView<const T> word, segment, position;
};

/// x ← the rows of `ids`, scaled as the design says. Throws InputError for ids beyond the table.
template <class T>
void embed_words(const Design& design, const EmbeddingTables<T>& tables,
                 std::span<const TokenId> ids, MatrixView<T> x);

/// x += segments (without any: of type 0) and learned or sinusoidal positions. Throws InputError
/// for those beyond the tables.
template <class T>
void add_segments_and_positions(const Design& design, const EmbeddingTables<T>& tables,
                                const StreamRows& stream, MatrixView<T> x);

/// x += rows of a table of late positions, one for each row of the stream. Throws InputError for
/// positions beyond it.
template <class T>
void add_late_positions(MatrixView<const T> table, const StreamRows& stream, MatrixView<T> x);

/// Rows of the segment table: of type 0 where a stream has none.
std::vector<Index> segment_rows(const StreamRows& stream);
/// Rows of the position table.
std::vector<Index> table_positions(const Design& design, const StreamRows& stream);

}  // namespace masque::model
