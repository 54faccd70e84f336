#include "nn/attention/query_block.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/divide.hpp"
#include "kernel/activation.hpp"
#include "nn/attention/round.hpp"
#include "nn/attention/unit_length.hpp"

namespace masque::nn {

namespace {

constexpr Index kBlock = mask::BlockMap::kBlock;
template <class T>
constexpr T kNone = -std::numeric_limits<T>::infinity();

}  // namespace

template <class T>
void PackedMatrix<T>::resize(Index columns, Index depth, OperandFormat operands) {
  operands_ = operands;
  const Index rows = operands == OperandFormat::kPairs ? tile::pairs_of(depth) : depth;
  memory_.resize(kernel::strips_of<T>(columns), rows * tile::kLanes<T>);
}

template <class T>
void PackedMatrix<T>::pack_rows(MatrixView<const T> x, Index first) {
  const tile::Strips<T> all{memory_.data(), memory_.columns()};
  if constexpr (std::is_same_v<T, float>) {
    if (operands_ == OperandFormat::kPairs) return tile::pack_pairs(x, all.from_depth(first / 2));
  }
  tile::pack(x, all.from_depth(first));
}

template <class T>
void PackedMatrix<T>::pack_transposed_rows(MatrixView<const T> x, Index first) {
  const tile::Strips<T> to{memory_.view().row(first / tile::kLanes<T>), memory_.columns()};
  if constexpr (std::is_same_v<T, float>) {
    if (operands_ == OperandFormat::kPairs) return tile::pack_pairs_transposed(x, to);
  }
  tile::pack_transposed(x, to);
}

template <class T>
void QueryBlock<T>::begin(const HeadOperands<T>& head, Index block) {
  head_ = &head;
  const AttentionProblem<T>& problem = *head.problem;
  const OperandFormat operands = head.key->operands();
  first_ = block * kBlock;
  const MatrixView<const T> query =
      head.query.middle_rows(first_, std::min(kBlock, head.query.rows - first_));
  query_view_ = query_.shape(query.rows, query.columns);
  list_entries(block);
  visible_.clear();
  factors_.clear();
  temperatures_.clear();
  const double scale = product_scale(problem);
  for (Index r = 0; r < query.rows; ++r) {
    const Index n = head.blocks == nullptr ? head.keys() : head.blocks->visible(first_ + r);
    const double temperature = problem.normalizer->temperature(n);
    // The temperature also belongs to position terms and follows a cap: after the product.
    const bool later = head.bias != nullptr || problem.cap > 0;
    visible_.push_back(n);
    factors_.push_back(static_cast<T>(later ? scale : scale * temperature));
    temperatures_.push_back(static_cast<T>(later ? temperature : 1));
    if (operands == OperandFormat::kPairs) continue;
    std::span<const T> row = query.row_span(r);
    if (operands == OperandFormat::kRounded) {
      round_row(row.data(), query.columns, query_view_.row(r));
      row = query_view_.row_span(r);
    }
    tile::multiply_row<T>(row, factors_.back(), query_view_.row(r));
  }
  if constexpr (std::is_same_v<T, float>) {
    if (operands != OperandFormat::kPairs) return;
    tile::to_pairs(query, query_view_);
    query_view_.columns = tile::pairs_of(query.columns);
  }
}

template <class T>
void QueryBlock<T>::list_entries(Index block) {
  entries_.clear();
  if (head_->blocks != nullptr) {
    const auto entries = head_->blocks->row(block);
    entries_.assign(entries.begin(), entries.end());
    return;
  }
  for (Index k = 0; k < block_count(head_->keys()); ++k)
    entries_.push_back({static_cast<std::int32_t>(k), -1});
}

/// The keys of `entry` that query `r` of the block sees, one a bit.
template <class T>
std::uint64_t QueryBlock<T>::visible_word(const mask::BlockEntry& entry, Index r) const {
  return entry.tile < 0 ? mask::low_bits(head_->keys() - entry.block * kBlock)
                        : head_->blocks->tile(entry)[static_cast<std::size_t>(r)];
}

template <class T>
Index QueryBlock<T>::find(mask::Range rows, std::span<const mask::BlockEntry> entries,
                          Placement placement) {
  pieces_.clear();
  runs_.clear();
  Index width = 0;
  for (const mask::BlockEntry& e : entries) {
    std::uint64_t any = e.tile < 0 ? visible_word(e, 0) : 0;
    std::uint64_t all = e.tile < 0 ? any : ~std::uint64_t{0};
    for (Index r = rows.begin; r < rows.end && e.tile >= 0; ++r) {
      any |= visible_word(e, r);
      all &= visible_word(e, r);
    }
    if (any == 0) continue;
    const Index begin = std::countr_zero(any) / tile::kLanes<T> * tile::kLanes<T>;
    const Index end = round_up(64 - std::countl_zero(any), tile::kLanes<T>);
    const std::uint64_t cells = mask::low_bits(end) & ~mask::low_bits(begin);
    const mask::Range seen{e.block * kBlock + begin, e.block * kBlock + end};
    const Index column = placement == Placement::kByKey ? seen.begin : width;
    pieces_.push_back({&e, seen, column, (all & cells) != cells});
    if (!runs_.empty() && runs_.back().keys.end == seen.begin) {
      runs_.back().keys.end = seen.end;
    } else {
      runs_.push_back({seen, column});
    }
    width += seen.size();
  }
  return placement == Placement::kByKey ? round_up(head_->keys(), tile::kLanes<T>) : width;
}

template <class T>
void QueryBlock<T>::make_scores(mask::Range rows, MatrixView<T> scores) const {
  const MatrixView<const T> query = query_view_.middle_rows(rows.begin, rows.size());
  const std::span<const T> factors(factors_.data() + rows.begin,
                                   static_cast<std::size_t>(rows.size()));
  const Index keys = head_->keys();
  for (const TileRun& run : runs_) {
    const MatrixView<T> some = scores.middle_columns(run.column, run.keys.size());
    multiply_rows<T>(query, *head_->key, run.keys.begin, factors, some);
    const double cap = head_->problem->cap;
    if (head_->bias == nullptr && cap == 0) continue;
    if (head_->bias != nullptr) {
      head_->bias->add({first_ + rows.begin, first_ + rows.end},
                       {run.keys.begin, std::min(run.keys.end, keys)},
                       some.middle_columns(0, keys_of(run, keys)));
    }
    if (cap > 0) kernel::soft_cap(cap, some);
    for (Index r = rows.begin; r < rows.end; ++r) {
      if (temperature(r) == 1) continue;
      const std::span<T> row = some.row_span(r - rows.begin);
      tile::multiply_row<T>(row, temperature(r), row.data());
    }
  }
  hide(rows, scores);
}

/// Elements of the pieces in `scores` that their row does not see become −∞.
template <class T>
void QueryBlock<T>::hide(mask::Range rows, MatrixView<T> scores) const {
  for (const TilePiece& piece : pieces_) {
    if (!piece.hidden) continue;
    const Index shift = piece.keys.begin % kBlock;
    for (Index r = rows.begin; r < rows.end; ++r) {
      tile::hide(scores.row(r - rows.begin) + piece.column, piece.keys.size(),
                 visible_word(*piece.entry, r) >> shift);
    }
  }
}

template <class T>
void BlockAttention<T>::run(const HeadOperands<T>& head, const PackedMatrix<T>& value, Index block,
                            Index step, const BlockOutputs<T>& out, const NumeratorHook<T>* hook) {
  head_ = &head;
  value_ = &value;
  out_ = &out;
  hook_ = hook;
  block_.begin(head, block);
  begin();
  const Index rows = block_.count();
  // As equal as possible.
  const Index tiles = divide_up(rows, tile::kRows);
  const Index per_tile = divide_up(rows, tiles);
  const std::span<const mask::BlockEntry> entries = block_.entries();
  for (std::size_t first = 0; first < entries.size();) {
    // Steps begin at fixed keys, so that skipped blocks change nothing.
    const Index bound = (entries[first].block / step + 1) * step;
    std::size_t last = first;
    while (last < entries.size() && entries[last].block < bound) ++last;
    for (Index r = 0; r < rows; r += per_tile) {
      run_tile({r, std::min(r + per_tile, rows)}, entries.subspan(first, last - first));
    }
    first = last;
  }
  write_rows();
}

template <class T>
void BlockAttention<T>::begin() {
  map_ = head_->problem->normalizer->map();
  divisor_ = head_->problem->normalizer->divisor();
  const Index rows = block_.count();
  context_view_ = context_.zeros(rows, round_up(out_->context.columns, tile::kLanes<T>));
  sums_view_ = sums_.zeros(rows, tile::kLanes<T>);
  states_.assign(static_cast<std::size_t>(rows), {head_->sink.value_or(kNone<T>)});
  for (Index r = 0; head_->sink && r < rows; ++r) sums_view_.at(r, 0) = T{1};
}

template <class T>
void BlockAttention<T>::run_tile(mask::Range rows, std::span<const mask::BlockEntry> entries) {
  const Index width = block_.find(rows, entries, Placement::kClose);
  if (width == 0) return;
  const MatrixView<T> x = scores_.shape(rows.size(), width);
  block_.make_scores(rows, x);
  if (!out_->scores.empty()) write_scores(rows, x);
  map_rows(rows, x);
  if (!out_->weights.empty()) write_weights(rows, x);
  if (out_->context.empty()) return;
  if (hook_ != nullptr) (*hook_)(block_.first() + rows.begin, block_.runs(), x);
  to_left_operand(x, value_->operands());
  add_products<T>(x, block_.runs(), head_->keys(), *value_,
                  context_view_.middle_rows(rows.begin, rows.size()));
}

/// Scores become numerators; what was summed before follows the largest score of its row.
template <class T>
void BlockAttention<T>::map_rows(mask::Range rows, MatrixView<T> scores) {
  const bool squares = divisor_ == Divisor::kRootSquares;
  const MatrixView<T> sums = sums_view_.middle_rows(rows.begin, rows.size());
  switch (map_) {
    case ScoreMap::kSquaredRelu: return tile::map_squared_relu(scores, squares, sums);
    case ScoreMap::kSigmoid: return tile::map_sigmoid(scores, squares, sums);
    case ScoreMap::kExp: break;
  }
  // A constant divisor does not follow a shift.
  if (divisor_ == Divisor::kConstant) return tile::map_exp(scores);
  const auto states = std::span(states_).subspan(static_cast<std::size_t>(rows.begin),
                                                 static_cast<std::size_t>(rows.size()));
  tile::map_exp_shifted(scores, states, squares, sums);
  for (Index r = rows.begin; r < rows.end; ++r) {
    const T factor = states[static_cast<std::size_t>(r - rows.begin)].factor;
    if (factor == 1) continue;
    const std::span<T> context = context_view_.row_span(r);
    tile::multiply_row<T>(context, factor, context.data());
  }
}

/// 0 if all weights of the row are 0.
template <class T>
T BlockAttention<T>::divisor(Index r) const {
  if (block_.visible(r) == 0) return T{};
  if (divisor_ == Divisor::kConstant)
    return static_cast<T>(head_->problem->normalizer->constant(block_.visible(r)));
  const T sum = tile::sum_lanes<T>(sums_view_.row(r));
  return divisor_ == Divisor::kRootSquares ? std::sqrt(sum) : sum;
}

template <class T>
void BlockAttention<T>::write_scores(mask::Range rows, MatrixView<const T> scores) const {
  for (Index r = rows.begin; r < rows.end; ++r) {
    for (const TileRun& run : block_.runs()) {
      std::copy_n(scores.row(r - rows.begin) + run.column, keys_of(run, head_->keys()),
                  out_->scores.row(r) + run.keys.begin);
    }
  }
}

template <class T>
void BlockAttention<T>::write_weights(mask::Range rows, MatrixView<const T> numerators) const {
  for (Index r = rows.begin; r < rows.end; ++r) {
    const T d = divisor(r);
    if (d == 0) continue;
    for (const TileRun& run : block_.runs()) {
      const T* const from = numerators.row(r - rows.begin) + run.column;
      T* const to = out_->weights.row(r) + run.keys.begin;
      for (Index j = 0; j < keys_of(run, head_->keys()); ++j) to[j] = from[j] / d;
    }
  }
}

template <class T>
void BlockAttention<T>::write_rows() const {
  const bool shifted = map_ == ScoreMap::kExp && divisor_ != Divisor::kConstant;
  const auto log_divisor = [&](std::size_t r, T d) {
    return std::log(d) + (shifted ? states_[r].largest : T{});
  };
  for (Index r = 0; r < block_.count(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    const T d = divisor(r);
    if (!out_->log_divisors.empty() && d != 0) out_->log_divisors[at] = log_divisor(at, d);
    if (!out_->saved.empty())
      out_->saved[at] = d == 0 ? -kNone<T> : saves_logarithm(map_) ? log_divisor(at, d) : d;
    if (out_->context.empty()) continue;
    const std::span<T> to = out_->context.row_span(r);
    const std::span<const T> from = context_view_.row_span(r).first(to.size());
    if (d == 0) {
      std::ranges::fill(to, T{});
    } else if (d >= 1) {
      tile::multiply_row<T>(from, 1 / d, to.data());
    } else {
      // The reciprocal may overflow.
      for (std::size_t e = 0; e < to.size(); ++e) to[e] = from[e] / d;
    }
  }
}

template <class T>
void to_left_operand(MatrixView<T> x, OperandFormat operands) {
  if constexpr (std::is_same_v<T, float>) {
    if (operands == OperandFormat::kPairs) return tile::to_pairs(x, x);
  }
  for (Index r = 0; r < x.rows && operands == OperandFormat::kRounded; ++r) {
    round_row(x.row(r), x.columns, x.row(r));
  }
}

template <class T>
void multiply_rows(MatrixView<const T> rows, const PackedMatrix<T>& b, Index column,
                   std::span<const T> factors, MatrixView<T> out) {
  if constexpr (std::is_same_v<T, float>) {
    if (b.operands() == OperandFormat::kPairs) {
      return tile::multiply_pairs(rows, b.from_column(column), factors, out);
    }
  }
  tile::multiply<T>(rows, b.from_column(column), out, false);
}

template <class T>
void add_products(MatrixView<const T> x, std::span<const TileRun> runs, Index keys,
                  const PackedMatrix<T>& b, MatrixView<T> sums) {
  for (const TileRun& run : runs) {
    const Index count = keys_of(run, keys);
    const tile::Strips<const T> from = b.from_depth(run.keys.begin);
    if constexpr (std::is_same_v<T, float>) {
      if (b.operands() == OperandFormat::kPairs) {
        tile::add_product_of_pairs(x.middle_columns(run.column / 2, tile::pairs_of(count)), from,
                                   sums);
        continue;
      }
    }
    tile::multiply<T>(x.middle_columns(run.column, count), from, sums, true);
  }
}

#define MASQUE_INSTANTIATE(T)                                                      \
  template class PackedMatrix<T>;                                                  \
  template class QueryBlock<T>;                                                    \
  template class BlockAttention<T>;                                                \
  template void to_left_operand(MatrixView<T>, OperandFormat);                     \
  template void multiply_rows(MatrixView<const T>, const PackedMatrix<T>&, Index,  \
                              std::span<const T>, MatrixView<T>);                  \
  template void add_products(MatrixView<const T>, std::span<const TileRun>, Index, \
                             const PackedMatrix<T>&, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::nn
