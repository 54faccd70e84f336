#include "nn/trained_block.hpp"

#include <utility>

#include "base/error.hpp"
#include "kernel/dropout.hpp"
#include "nn/round.hpp"
#include "nn/unit_length.hpp"

namespace masque::nn::trained {

template <class T>
void Operand<T>::take(MatrixView<const T> x, bool unit, bool bf16) {
  plain_ = x;
  if (unit) {
    unit_ = unit_rows(x, 1);
    plain_ = std::as_const(unit_).view();
  }
  product_ = plain_;
  if (!bf16) return;
  rounded_.resize(x.rows, x.columns);
  for (Index i = 0; i < x.rows; ++i) {
    round_row(plain_.row(i), x.columns, rounded_.view().row(i));
  }
  product_ = std::as_const(rounded_).view();
}

template <class T>
void QueryBlock<T>::begin(const HeadOperands<T>& head, Index block) {
  const AttentionProblem<T>& problem = *head.problem;
  const MatrixView<const T> query = head.query->product();
  blocks_ = problem.blocks;
  keys_ = head.keys();
  first_ = block * BlockMap::kBlock;
  const Index count = std::min(BlockMap::kBlock, query.rows - first_);
  query_view_ = query_.shape(count, query.columns);
  list_entries(problem.blocks, block, head.keys(), entries_);
  visible_.clear();
  factors_.clear();
  temperatures_.clear();
  const double scale = product_scale(problem);
  for (Index r = 0; r < count; ++r) {
    const Index n = problem.blocks == nullptr ? head.keys() : problem.blocks->visible(first_ + r);
    const double temperature = problem.normalizer->temperature(n);
    // The temperature also belongs to position terms: they come after the product.
    const bool later = head.bias != nullptr;
    visible_.push_back(n);
    factors_.push_back(static_cast<T>(later ? scale : scale * temperature));
    temperatures_.push_back(static_cast<T>(later ? temperature : 1));
    tile::multiply_row<T>(query.row_span(first_ + r), factors_.back(), query_view_.row(r));
  }
}

template <class T>
Index QueryBlock<T>::find(Range rows, std::span<const BlockEntry> entries, Placement placement) {
  const Index width = find_pieces<T>(blocks_, keys_, entries, rows, tile_);
  if (placement == Placement::kClose) return width;
  for (TilePiece& piece : tile_.pieces) piece.column = piece.keys.begin;
  for (TileRun& run : tile_.runs) run.column = run.keys.begin;
  return tile::round_up(keys_, tile::kLanes<T>);
}

template <class T>
void QueryBlock<T>::make_scores(const HeadOperands<T>& head, Range rows,
                                MatrixView<T> scores) const {
  const MatrixView<const T> query = query_view_.middle_rows(rows.begin, rows.size());
  for (const TileRun& run : tile_.runs) {
    const MatrixView<T> some = scores.middle_columns(run.column, run.keys.size());
    tile::multiply<T>(query, head.key_transposed->from_column(run.keys.begin), some, false);
    if (head.bias == nullptr) continue;
    head.bias->add({first_ + rows.begin, first_ + rows.end},
                   {run.keys.begin, std::min(run.keys.end, keys_)},
                   some.middle_columns(0, keys_of(run, keys_)));
    for (Index r = rows.begin; r < rows.end; ++r) {
      if (temperature(r) == 1) continue;
      const std::span<T> row = some.row_span(r - rows.begin);
      tile::multiply_row<T>(row, temperature(r), row.data());
    }
  }
  hide_pieces(blocks_, keys_, rows, tile_, scores);
}

template <class T>
void drop(const TrainedAttention<T>& attention, Index head, Index first,
          std::span<const TileRun> runs, MatrixView<T> x) {
  if (attention.dropout == 0) return;
  const Index queries = attention.problem.query.rows;
  const Index keys = attention.problem.key.rows;
  for (const TileRun& run : runs) {
    for (Index r = 0; r < x.rows; ++r) {
      const Index number = (head * queries + first + r) * keys + run.keys.begin;
      kernel::dropout_forward(attention.dropout, attention.stream,
                              static_cast<std::uint64_t>(number),
                              MatrixView<T>(x.row(r) + run.column, 1, keys_of(run, keys)));
    }
  }
}

template <class T>
void round_rows(MatrixView<T> x) {
  for (Index r = 0; r < x.rows; ++r) round_row(x.row(r), x.columns, x.row(r));
}

#define MASQUE_INSTANTIATE(T)                                                            \
  template class Operand<T>;                                                             \
  template class QueryBlock<T>;                                                          \
  template void drop(const TrainedAttention<T>&, Index, Index, std::span<const TileRun>, \
                     MatrixView<T>);                                                     \
  template void round_rows(MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::nn::trained
