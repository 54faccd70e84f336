#include "nn/differentiable_attention_block.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "kernel/dropout.hpp"
#include "nn/round.hpp"
#include "nn/tile_pairs.hpp"
#include "nn/unit_length.hpp"

namespace masque::nn::differentiable {

template <class T>
tile::Strips<T> PackedMatrix<T>::shape(Index columns, Index depth) {
  const Index rows = operands_ == Operands::kPairs ? tile::pairs_of(depth) : depth;
  memory_.resize(kernel::strips_of<T>(columns), rows * tile::kLanes<T>);
  return {memory_.data(), memory_.columns()};
}

template <class T>
void PackedMatrix<T>::pack(MatrixView<const T> x, Operands operands) {
  operands_ = operands;
  const tile::Strips<T> to = shape(x.columns, x.rows);
  if constexpr (std::is_same_v<T, float>) {
    if (operands == Operands::kPairs) return tile::pack_pairs(x, to);
  }
  tile::pack(x, to);
}

template <class T>
void PackedMatrix<T>::pack_transposed(MatrixView<const T> x, Operands operands) {
  operands_ = operands;
  const tile::Strips<T> to = shape(x.rows, x.columns);
  if constexpr (std::is_same_v<T, float>) {
    if (operands == Operands::kPairs) return tile::pack_pairs_transposed(x, to);
  }
  tile::pack_transposed(x, to);
}

template <class T>
void TileOperand<T>::take(MatrixView<const T> x, bool unit, Operands operands) {
  plain_ = x;
  if (unit) {
    unit_ = unit_rows(x, 1);
    plain_ = std::as_const(unit_).view();
  }
  product_ = plain_;
  // Pairs are rounded where they are made.
  if (operands != Operands::kRounded) return;
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
  blocks_ = head.blocks;
  keys_ = head.keys();
  first_ = block * mask::BlockMap::kBlock;
  const Index count = std::min(mask::BlockMap::kBlock, query.rows - first_);
  query_view_ = query_.shape(count, query.columns);
  list_entries(blocks_, block, head.keys(), entries_);
  visible_.clear();
  factors_.clear();
  temperatures_.clear();
  const double scale = product_scale(problem);
  const bool pairs = operands_of(problem) == Operands::kPairs;
  for (Index r = 0; r < count; ++r) {
    const Index n = blocks_ == nullptr ? head.keys() : blocks_->visible(first_ + r);
    const double temperature = problem.normalizer->temperature(n);
    // The temperature also belongs to position terms: they come after the product.
    const bool later = head.bias != nullptr;
    visible_.push_back(n);
    factors_.push_back(static_cast<T>(later ? scale : scale * temperature));
    temperatures_.push_back(static_cast<T>(later ? temperature : 1));
    if (!pairs) {
      tile::multiply_row<T>(query.row_span(first_ + r), factors_.back(), query_view_.row(r));
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (pairs) tile::to_pairs(query.middle_rows(first_, count), query_view_);
  }
  if (pairs) query_view_.columns = tile::pairs_of(query.columns);
}

template <class T>
Index QueryBlock<T>::find(mask::Range rows, std::span<const mask::BlockEntry> entries,
                          Placement placement) {
  const Index width = find_pieces<T>(blocks_, keys_, entries, rows, tile_);
  if (placement == Placement::kClose) return width;
  for (TilePiece& piece : tile_.pieces) piece.column = piece.keys.begin;
  for (TileRun& run : tile_.runs) run.column = run.keys.begin;
  return tile::round_up(keys_, tile::kLanes<T>);
}

template <class T>
void QueryBlock<T>::make_scores(const HeadOperands<T>& head, mask::Range rows,
                                MatrixView<T> scores) const {
  const MatrixView<const T> query = query_view_.middle_rows(rows.begin, rows.size());
  const std::span<const T> factors(factors_.data() + rows.begin,
                                   static_cast<std::size_t>(rows.size()));
  for (const TileRun& run : tile_.runs) {
    const MatrixView<T> some = scores.middle_columns(run.column, run.keys.size());
    multiply_rows<T>(query, *head.key_transposed, run.keys.begin, factors, some);
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
void drop(const DifferentiableAttention<T>& attention, Index head, Index first,
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
void copy_part(Keys keys, std::span<const Index> own_keys, MatrixView<const T> x,
               std::span<const TileRun> runs, MatrixView<T> to) {
  for (Index r = 0; r < x.rows; ++r) {
    std::copy_n(x.row(r), x.columns, to.row(r));
    for (const TileRun& run : runs) {
      const Index own = own_keys[static_cast<std::size_t>(r)];
      const Index border = std::clamp(own, run.keys.begin, run.keys.end) - run.keys.begin;
      T* const begin = to.row(r) + run.column;
      if (keys == Keys::kOwn) {
        std::fill(begin, begin + border, T{});
      } else {
        std::fill(begin + border, begin + run.keys.size(), T{});
      }
    }
  }
}

template <class T>
MatrixView<const T> left_operand(MatrixView<const T> x, Operands operands,
                                 PaddedMatrix<T>& memory) {
  if constexpr (std::is_same_v<T, float>) {
    if (operands == Operands::kPairs) {
      MatrixView<T> out = memory.shape(x.rows, x.columns);
      tile::to_pairs(x, out);
      out.columns = tile::pairs_of(x.columns);
      return out;
    }
  }
  return x;
}

template <class T>
void to_left_operand(MatrixView<T> x, Operands operands) {
  if constexpr (std::is_same_v<T, float>) {
    if (operands == Operands::kPairs) return tile::to_pairs(x, x);
  }
  for (Index r = 0; r < x.rows && operands == Operands::kRounded; ++r) {
    round_row(x.row(r), x.columns, x.row(r));
  }
}

template <class T>
void multiply_rows(MatrixView<const T> rows, const PackedMatrix<T>& b, Index column,
                   std::span<const T> factors, MatrixView<T> out) {
  if constexpr (std::is_same_v<T, float>) {
    if (b.operands() == Operands::kPairs) {
      return tile::multiply_pairs(rows, b.from_column(column), factors, out);
    }
  }
  tile::multiply<T>(rows, b.from_column(column), out, false);
}

template <class T>
void add_product(MatrixView<const T> x, const TileRun& run, Index keys, const PackedMatrix<T>& b,
                 MatrixView<T> sums) {
  const tile::Strips<const T> from = b.from_depth(run.keys.begin);
  if constexpr (std::is_same_v<T, float>) {
    if (b.operands() == Operands::kPairs) {
      return tile::add_product_of_pairs(x.middle_columns(run.column / 2, tile::pairs_of(keys)),
                                        from, sums);
    }
  }
  tile::multiply<T>(x.middle_columns(run.column, keys), from, sums, true);
}

#define MASQUE_INSTANTIATE(T)                                                                   \
  template class PackedMatrix<T>;                                                               \
  template class TileOperand<T>;                                                                \
  template class QueryBlock<T>;                                                                 \
  template void drop(const DifferentiableAttention<T>&, Index, Index, std::span<const TileRun>, \
                     MatrixView<T>);                                                            \
  template void copy_part(Keys, std::span<const Index>, MatrixView<const T>,                    \
                          std::span<const TileRun>, MatrixView<T>);                             \
  template MatrixView<const T> left_operand(MatrixView<const T>, Operands, PaddedMatrix<T>&);   \
  template void to_left_operand(MatrixView<T>, Operands);                                       \
  template void multiply_rows(MatrixView<const T>, const PackedMatrix<T>&, Index,               \
                              std::span<const T>, MatrixView<T>);                               \
  template void add_product(MatrixView<const T>, const TileRun&, Index, const PackedMatrix<T>&, \
                            MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::nn::differentiable
