// The position terms of attention, made for one sequence of a layer: the same for inference and
// training.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::model {

/// What terms are made from. Views, spans and the scheme are borrowed; what a design does not have
/// stays empty. Gradients are wanted where their views have data.
template <class T>
struct PositionInputs {
  /// The given positions; 0, 1, … next to a learned table, whose rows given positions choose, as
  /// in transformers.
  nn::PositionIds positions;
  std::span<const Index> query_segments;  ///< empty: all of segment 0
  std::span<const Index> key_segments;    ///< empty: all of segment 0
  // VariantDesign::position
  const nn::PositionScheme* scheme = nullptr;       ///< nullptr: the design's own terms
  nn::PositionShape shape;                          ///< shape of the layer, for `scheme`
  std::span<const MatrixView<const T>> parameters;  ///< as `scheme` lists them
  std::span<const MatrixView<T>> gradients;         ///< by the parameters; empty: none are wanted
  std::optional<std::uint64_t> draw;                ///< number of a random draw of positions
  /// What is read in blocks (LayerMasks::sparse()); nullptr: nothing.
  const BlockSparseDesign* blocks = nullptr;
  // T5 and MPNet
  MatrixView<const T> table;  ///< (buckets, heads)
  MatrixView<T> d_table;      ///< its gradient
  /// XLNet: tables and their gradients; position_terms() sets `row`, `scale` and segments.
  nn::XlnetTerms<T> xlnet;
  Index first_distance = 0;  ///< distance of row 0 of `xlnet.relative`
  /// DeBERTa: tables and their gradients; position_terms() sets the numbers.
  nn::DisentangledTerms<T> disentangled;
};

/// The terms of scores, of queries and keys, of weights, of values that `inputs` make in a layer of
/// `design`; they point to what the inputs point to. nullptr for a design without any.
template <class T>
std::unique_ptr<nn::PositionTerms<T>> position_terms(const Design& design,
                                                     PositionInputs<T> inputs);

/// Whether position_terms gives any for `design`.
bool has_position_terms(const Design& design);

/// PositionInputs::positions next to a learned table, of a sequence of rows `begin` … `end` − 1: 0,
/// 1, … `rows` are those of the queries; nothing: all. `counted` keeps what the result points to.
nn::PositionIds counted_positions(Index begin, Index end,
                                  std::optional<std::span<const Index>> rows,
                                  std::vector<Index>& counted);

/// XLNet: sinusoids of all distances of some sequences, from the largest to its negative.
template <class T>
struct XlnetDistances {
  Index first = 0;  ///< the distance of row 0, the largest; row r is that of first − r
  Matrix<T> waves;  ///< (distances, hidden size), clamped as the design says
};
/// The distances of `design` for `positions`, one a row; `begins`: the first rows of the sequences,
/// and the end. Throws InputError (of `path`, if any) for positions more than 2^20 apart in a
/// sequence.
template <class T>
XlnetDistances<T> xlnet_distances(const Design& design, std::span<const Index> positions,
                                  std::span<const Index> begins, std::string_view path = {});

}  // namespace masque::model
