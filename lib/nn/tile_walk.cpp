#include "nn/tile_walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "nn/round.hpp"
#include "nn/tile_pairs.hpp"
#include "nn/tile_pieces.hpp"

namespace masque::nn {

namespace {

constexpr Index kBlock = mask::BlockMap::kBlock;

/// Buffers of a thread and the state of the rows of a block row.
template <class T>
struct WalkMemory {
  Matrix<T> query;
  Matrix<T> scores;
  Matrix<T> context;
  Matrix<T> sums;
  std::vector<tile::RowState<T>> states;
  std::vector<T> scale;  ///< of products with a query
  std::vector<T> temperature;
  std::vector<Index> visible;
  std::vector<mask::BlockEntry> entries;
  TilePieces tile;
};

template <class T>
class Walk {
 public:
  Walk(const BlockRow<T>& row, Index step, WalkMemory<T>& scratch)
      : row_(row), step_(step), s_(scratch), rows_(row.query.rows) {
    const AttentionNormalizer& normalizer = *row.normalizer;
    map_ = normalizer.map();
    divisor_ = normalizer.divisor();
  }

  void run() {
    list_entries(row_.blocks, row_.first_query / kBlock, row_.keys, s_.entries);
    prepare_rows();
    const Index entries = static_cast<Index>(s_.entries.size());
    const Index per_tile = tile_rows();
    for (Index first = 0; first < entries;) {
      // Steps begin at fixed keys, so that skipped blocks change nothing.
      const Index bound = (entry(first).block / step_ + 1) * step_;
      Index last = first;
      while (last < entries && entry(last).block < bound) ++last;
      for (Index r = 0; r < rows_; r += per_tile) {
        step_of_tile({r, std::min(r + per_tile, rows_)}, {first, last});
      }
      first = last;
    }
    write_context();
  }

 private:
  const mask::BlockEntry& entry(Index i) const { return s_.entries[static_cast<std::size_t>(i)]; }
  T temperature(Index r) const { return s_.temperature[static_cast<std::size_t>(r)]; }
  Index visible(Index r) const { return s_.visible[static_cast<std::size_t>(r)]; }

  /// Rows of a tile: as equal as possible.
  Index tile_rows() const {
    const Index tiles = (rows_ + tile::kRows - 1) / tile::kRows;
    return (rows_ + tiles - 1) / tiles;
  }

  /// Scaled queries, temperatures, and zero sums.
  void prepare_rows() {
    const Index size = row_.query.columns;
    const Index width = step_ * kBlock;
    const Index value_width = tile::round_up(row_.context.columns, tile::kLanes<T>);
    // A row more than a power of two apart: else all rows share few lines of the cache.
    s_.query.resize(rows_, tile::round_up(size, tile::kLanes<T>) + tile::kLanes<T>);
    s_.scores.resize(tile_rows(), width + tile::kLanes<T>);
    s_.context.resize(rows_, value_width + tile::kLanes<T>);
    s_.sums.resize(rows_, tile::kLanes<T>);
    std::fill(s_.context.span().begin(), s_.context.span().end(), T{});
    std::fill(s_.sums.span().begin(), s_.sums.span().end(), T{});
    s_.states.assign(static_cast<std::size_t>(rows_), {-std::numeric_limits<T>::infinity()});
    s_.scale.clear();
    s_.temperature.clear();
    s_.visible.clear();
    for (Index r = 0; r < rows_; ++r) {
      const Index n =
          row_.blocks == nullptr ? row_.keys : row_.blocks->visible(row_.first_query + r);
      const double temperature = row_.normalizer->temperature(n);
      s_.visible.push_back(n);
      s_.temperature.push_back(static_cast<T>(temperature));
      // The temperature also belongs to position terms: they come later.
      s_.scale.push_back(
          static_cast<T>(row_.bias == nullptr ? row_.scale * temperature : row_.scale));
      prepare_query(r);
    }
  }

  /// A query as operand. Pairs are multiplied by their scale after the product.
  void prepare_query(Index r) {
    const std::span<const T> from = row_.query.row_span(r);
    const MatrixView<T> to = s_.query.view().middle_rows(r, 1);
    const T scale = s_.scale[static_cast<std::size_t>(r)];
    if (row_.operands == Operands::kPlain) return tile::multiply_row<T>(from, scale, to.data);
    if constexpr (std::is_same_v<T, float>) {
      if (row_.operands == Operands::kPairs) {
        return tile::to_pairs(row_.query.middle_rows(r, 1), to);
      }
    }
    round_row(from.data(), row_.query.columns, to.data);
    tile::multiply_row<T>({to.data, from.size()}, scale, to.data);
  }

  void step_of_tile(mask::Range rows, mask::Range entries) {
    const auto some = std::span(s_.entries)
                          .subspan(static_cast<std::size_t>(entries.begin),
                                   static_cast<std::size_t>(entries.size()));
    const Index width = find_pieces<T>(row_.blocks, row_.keys, some, rows, s_.tile);
    if (width == 0) return;
    MatrixView<T> scores(s_.scores.data(), rows.size(), width, s_.scores.columns());
    make_scores(rows, scores);
    if (!row_.scores.empty()) write_scores(rows, scores);
    map_rows(rows, scores);
    if (!row_.weights.empty()) write_weights(rows, scores);
    prepare_numerators(scores);
    add_values(rows, scores);
  }

  /// Numerators become operands, in place.
  void prepare_numerators(MatrixView<T> x) const {
    if constexpr (std::is_same_v<T, float>) {
      if (row_.operands == Operands::kPairs) tile::to_pairs(x, x);
    }
    for (Index r = 0; r < x.rows && row_.operands == Operands::kRounded; ++r) {
      round_row(x.row(r), x.columns, x.row(r));
    }
  }

  /// Adds numerators times values to the context.
  void add_values(mask::Range rows, MatrixView<const T> numerators) {
    MatrixView<T> sums = s_.context.view().middle_rows(rows.begin, rows.size());
    sums.columns -= tile::kLanes<T>;
    const auto value_from = [&](Index depth) { return row_.value.from_depth(depth); };
    if constexpr (std::is_same_v<T, float>) {
      if (row_.operands == Operands::kPairs) {
        for (const TileRun& run : s_.tile.runs) {
          const Index keys = std::min(run.keys.end, row_.keys) - run.keys.begin;
          tile::add_product_of_pairs(
              numerators.middle_columns(run.column / 2, tile::pairs_of(keys)),
              value_from(run.keys.begin / 2), sums);
        }
        return;
      }
    }
    for (const TileRun& run : s_.tile.runs) {
      const Index keys = std::min(run.keys.end, row_.keys) - run.keys.begin;
      tile::multiply<T>(numerators.middle_columns(run.column, keys), value_from(run.keys.begin),
                        sums, true);
    }
  }

  /// Products of queries and keys.
  void multiply_keys(mask::Range rows, const TileRun& run, MatrixView<T> scores) const {
    MatrixView<const T> query = s_.query.view().middle_rows(rows.begin, rows.size());
    const tile::Strips<const T> key = row_.key.from_column(run.keys.begin);
    if constexpr (std::is_same_v<T, float>) {
      if (row_.operands == Operands::kPairs) {
        query.columns = tile::pairs_of(row_.query.columns);
        const auto scale =
            std::span<const float>(s_.scale).subspan(static_cast<std::size_t>(rows.begin));
        return tile::multiply_pairs(query, key, scale, scores);
      }
    }
    query.columns = row_.query.columns;
    tile::multiply<T>(query, key, scores, false);
  }

  /// Scores of the pieces; −∞ where hidden.
  void make_scores(mask::Range rows, MatrixView<T> scores) {
    for (const TileRun& run : s_.tile.runs) {
      multiply_keys(rows, run, scores.middle_columns(run.column, run.keys.size()));
      if (row_.bias == nullptr) continue;
      const mask::Range keys{run.keys.begin, std::min(run.keys.end, row_.keys)};
      row_.bias->add({row_.first_query + rows.begin, row_.first_query + rows.end}, keys,
                     scores.middle_columns(run.column, keys.size()));
    }
    for (Index r = rows.begin; r < rows.end && row_.bias != nullptr; ++r) {
      if (temperature(r) == 1) continue;
      const std::span<T> row = scores.row_span(r - rows.begin);
      tile::multiply_row<T>(row, temperature(r), row.data());
    }
    hide_pieces(row_.blocks, row_.keys, rows, s_.tile, scores);
  }

  /// Scores become numerators; what was summed before follows the largest score of its row.
  void map_rows(mask::Range rows, MatrixView<T> scores) {
    const bool squares = divisor_ == Divisor::kRootSquares;
    const MatrixView<T> sums = s_.sums.view().middle_rows(rows.begin, rows.size());
    if (map_ == ScoreMap::kSquaredRelu) return tile::map_squared_relu(scores, squares, sums);
    if (map_ == ScoreMap::kSigmoid) return tile::map_sigmoid(scores, squares, sums);
    // A constant divisor does not follow a shift.
    if (divisor_ == Divisor::kConstant) return tile::map_exp(scores);
    const auto states = std::span(s_.states).subspan(static_cast<std::size_t>(rows.begin),
                                                     static_cast<std::size_t>(rows.size()));
    tile::map_exp_shifted(scores, states, squares, sums);
    for (Index r = rows.begin; r < rows.end; ++r) {
      const T factor = states[static_cast<std::size_t>(r - rows.begin)].factor;
      if (factor == 1) continue;
      const std::span<T> context = s_.context.view().row_span(r);
      tile::multiply_row<T>(context, factor, context.data());
    }
  }

  /// 0 if all weights of the row are 0.
  T divisor(Index r) const {
    if (visible(r) == 0) return T{};
    if (divisor_ == Divisor::kConstant) {
      return static_cast<T>(row_.normalizer->constant(visible(r)));
    }
    const T sum = tile::sum_lanes(s_.sums.view().row(r));
    return divisor_ == Divisor::kRootSquares ? std::sqrt(sum) : sum;
  }

  void write_scores(mask::Range rows, MatrixView<const T> scores) const {
    for (Index r = rows.begin; r < rows.end; ++r) {
      for (const TileRun& run : s_.tile.runs) {
        const T* from = scores.row(r - rows.begin) + run.column;
        const Index end = std::min(run.keys.end, row_.keys);
        std::copy(from, from + (end - run.keys.begin), row_.scores.row(r) + run.keys.begin);
      }
    }
  }

  void write_weights(mask::Range rows, MatrixView<const T> scores) const {
    const bool shifted = map_ == ScoreMap::kExp && divisor_ != Divisor::kConstant;
    for (Index r = rows.begin; r < rows.end; ++r) {
      const T d = divisor(r);
      if (d == 0) continue;
      if (!row_.log_divisors.empty()) {
        const auto at = static_cast<std::size_t>(r);
        row_.log_divisors[at] = std::log(d) + (shifted ? s_.states[at].largest : T{});
      }
      for (const TileRun& run : s_.tile.runs) {
        const T* from = scores.row(r - rows.begin) + run.column - run.keys.begin;
        const Index end = std::min(run.keys.end, row_.keys);
        for (Index j = run.keys.begin; j < end; ++j) row_.weights.at(r, j) = from[j] / d;
      }
    }
  }

  void write_context() const {
    for (Index r = 0; r < rows_; ++r) {
      const T d = divisor(r);
      const std::span<T> to = row_.context.row_span(r);
      const std::span<const T> from = s_.context.view().row_span(r).first(to.size());
      if (d == 0) {
        std::fill(to.begin(), to.end(), T{});
      } else if (d >= 1) {
        tile::multiply_row<T>(from, 1 / d, to.data());
      } else {
        // The reciprocal may overflow.
        for (std::size_t e = 0; e < to.size(); ++e) to[e] = from[e] / d;
      }
    }
  }

  const BlockRow<T>& row_;
  Index step_;
  WalkMemory<T>& s_;
  Index rows_;
  ScoreMap map_ = ScoreMap::kExp;
  Divisor divisor_ = Divisor::kSum;
};

}  // namespace

template <class T>
void walk_block_row(const BlockRow<T>& row, Index step) {
  thread_local WalkMemory<T> scratch;
  Walk<T>(row, step, scratch).run();
}

template void walk_block_row(const BlockRow<float>&, Index);
template void walk_block_row(const BlockRow<double>&, Index);

}  // namespace masque::nn
