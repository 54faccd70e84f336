// The sum of a model's tables, by rows of a stream.
#pragma once

#include <span>
#include <vector>

#include "model/design.hpp"
#include "model/forward/stream.hpp"
#include "tensor/matrix.hpp"
#include "tensor/row_source.hpp"

namespace masque::model {

/// Tables (entries, embedding size); without data: the model has none.
template <class T>
struct EmbeddingTables {
  MatrixView<const T> word,  ///< a row a token of the vocabulary
      segment,               ///< a row a token type
      position;              ///< a row a position, after Design::position_offset others
  /// Reads the rows of `word`, which then has no data; nullptr: it has them.
  const RowSource* words = nullptr;

  /// Whether the model has a word table.
  bool has_words() const { return word.data != nullptr || words != nullptr; }
};

/// `x` (rows of `stream`, embedding size) ← the rows of their tokens `ids` in the word table of
/// `tables`, scaled by scale_words() of `design`. Throws InputError for ids beyond the table.
template <class T>
void embed_words(const Design& design, const EmbeddingTables<T>& tables, const StreamRows& stream,
                 std::span<const TokenId> ids, MatrixView<T> x);

/// Multiplies each row of `x`, of the tokens `ids` of `stream`, as `design` says
/// (Design::embedding_scale and token_dropout): rows of the word table, or their gradients.
template <class T>
void scale_words(const Design& design, const StreamRows& stream, std::span<const TokenId> ids,
                 MatrixView<T> x);

/// `x` += the segments of `stream` (without any: of type 0) and its positions, by `tables` (but
/// see add_projected_positions()) or, where `design` has these, sinusoidal. Throws InputError for
/// those beyond the tables.
template <class T>
void add_segments_and_positions(const Design& design, const EmbeddingTables<T>& tables,
                                const StreamRows& stream, MatrixView<T> x);

/// With Design::positions_after_projection of `design`: `x` (rows of `stream`, hidden size) += its
/// positions in `tables`. Throws InputError for those beyond the table.
template <class T>
void add_projected_positions(const Design& design, const EmbeddingTables<T>& tables,
                             const StreamRows& stream, MatrixView<T> x);

/// `x` (rows of `stream`, hidden size) += the rows of `table`, late positions, at the positions of
/// `stream`. Throws InputError for positions beyond it.
template <class T>
void add_late_positions(MatrixView<const T> table, const StreamRows& stream, MatrixView<T> x);

/// The row of the segment table for each row of `stream`: of type 0 where it has no segments.
std::vector<Index> segment_rows(const StreamRows& stream);
/// The row of the position table of `design` for each row of `stream`: its position plus the
/// offset.
std::vector<Index> table_positions(const Design& design, const StreamRows& stream);

}  // namespace masque::model
