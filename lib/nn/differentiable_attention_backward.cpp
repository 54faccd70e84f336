#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/attention_reference.hpp"
#include "nn/differentiable_attention_block.hpp"
#include "nn/tile_gradients.hpp"
#include "nn/unit_length.hpp"

namespace masque::nn::differentiable {

namespace {

/// Key blocks taken at once.
constexpr Index kStep = 4;
/// Queries taken at once under a mask: fewer follow its border more closely.
constexpr Index kMaskedRows = 32;

/// Buffers of a thread.
template <class T>
struct BackwardMemory {
  TileOperand<T> query, key, value, d_context;
  PackedMatrix<T> key_transposed, packed_key, value_transposed, packed_query, packed_d_context;
  QueryBlock<T> block;
  /// Of a tile or, with terms, of a head: weights, those that met the values, and gradients by
  /// weights, then by scores.
  PaddedMatrix<T> weights, dropped, d;
  PaddedMatrix<T> d_context_pairs, row_pairs;
  std::vector<T> ones;
  PaddedMatrix<T> d_query_tile;    ///< by scaled queries
  PaddedMatrix<T> d_query;         ///< of a head, by operands
  PaddedMatrix<T> d_key, d_value;  ///< of a key head, by operands
  PaddedMatrix<T> d_earlier_key, d_earlier_value;
  PaddedMatrix<T> part;                    ///< of a tile, or a head: what own or earlier keys have
  std::vector<tile::GradientRow<T>> rows;  ///< of a block
};

template <class T>
class Backward {
 public:
  Backward(const DifferentiableBackward<T>& sequence, Index group, BackwardMemory<T>& scratch)
      : b_(sequence),
        problem_(sequence.attention.problem),
        group_(group),
        operands_(operands_of(sequence.attention.problem)),
        s_(scratch) {}

  void run() {
    const Index groups = problem_.num_key_value_heads;
    const AttentionNormalizer& normalizer = *problem_.normalizer;
    const auto key = reference::columns_of(problem_.key, group_, groups);
    s_.key.take(key, unit_keys(normalizer), operands_);
    s_.value.take(reference::columns_of(problem_.value, group_, groups), false, operands_);
    s_.key_transposed.pack_transposed(s_.key.product(), operands_);
    s_.packed_key.pack(s_.key.product(), operands_);
    s_.value_transposed.pack_transposed(s_.value.product(), operands_);
    d_key_ = s_.d_key.zeros(key.rows, width(key.columns));
    d_value_ = s_.d_value.zeros(key.rows, width(s_.value.product().columns));
    if (parted()) {
      d_earlier_key_ = s_.d_earlier_key.zeros(key.rows, d_key_.columns);
      d_earlier_value_ = s_.d_earlier_value.zeros(key.rows, d_value_.columns);
    }
    const Index heads = problem_.num_heads / groups;
    for (Index head = group_ * heads; head < (group_ + 1) * heads; ++head) run_head(head);
    add_keys(key, d_key_, b_.gradients.key);
    add_values(d_value_, b_.gradients.value);
    if (!parted()) return;
    add_keys(key, d_earlier_key_, b_.gradients.earlier_key);
    add_values(d_earlier_value_, b_.gradients.earlier_value);
  }

 private:
  /// Whether some keys are earlier ones.
  bool parted() const { return !b_.own_keys.empty(); }
  void add_keys(MatrixView<const T> key, MatrixView<T> sums, MatrixView<T> gradient) const {
    if (gradient.data == nullptr) return;
    const auto to = reference::columns_of(gradient, group_, problem_.num_key_value_heads);
    const MatrixView<T> from = sums.middle_columns(0, to.columns);
    if (unit_keys(*problem_.normalizer)) {
      unit_rows_backward<T>(key, 1, from, to);
    } else {
      add_rows(from, to);
    }
  }
  void add_values(MatrixView<T> sums, MatrixView<T> gradient) const {
    if (gradient.data == nullptr) return;
    const auto to = reference::columns_of(gradient, group_, problem_.num_key_value_heads);
    add_rows(sums.middle_columns(0, to.columns), to);
  }
  static Index width(Index columns) { return tile::round_up(columns, tile::kLanes<T>); }
  void add_rows(MatrixView<const T> from, MatrixView<T> to) const {
    tile::add_scaled_rows<T>(from, ones(static_cast<std::size_t>(to.rows)), to);
  }
  std::span<const T> ones(std::size_t count) const {
    if (s_.ones.size() < count) s_.ones.assign(count, T{1});
    return std::span<const T>(s_.ones).first(count);
  }
  bool pairs() const { return operands_ == Operands::kPairs; }
  /// Whether something must see all weights, or gradients, of a head.
  bool needs_full_weights() const {
    return b_.attention.weight_terms != nullptr || b_.attention.value_terms != nullptr ||
           b_.gradients.bias != nullptr;
  }

  void run_head(Index head) {
    head_ = head;
    const Index heads = problem_.num_heads;
    const bool unit = unit_queries(*problem_.normalizer);
    const auto query = reference::columns_of(problem_.query, head, heads);
    s_.query.take(query, unit, operands_);
    s_.d_context.take(reference::columns_of(b_.d_context, head, heads), false, operands_);
    bias_.reset();
    if (problem_.bias != nullptr) {
      bias_ = problem_.bias->head(head, s_.query.plain(), s_.key.plain());
    }
    const bool wanted = b_.gradients.query.data != nullptr;
    const MatrixView<T> target =
        wanted ? reference::columns_of(b_.gradients.query, head, heads) : MatrixView<T>();
    const bool direct = wanted && !unit;
    d_query_ = direct ? target : s_.d_query.zeros(query.rows, query.columns);
    if (needs_full_weights()) {
      run_whole();
    } else {
      run_tiles();
    }
    if (wanted && !direct) unit_rows_backward<T>(query, 1, d_query_, target);
  }

  HeadOperands<T> operands() const {
    return {&problem_, &s_.query, &s_.key_transposed, bias_.get(),
            mask::blocks_of_head(problem_.blocks, head_)};
  }

  void run_tiles() {
    for (Index b = 0; b < blocks_of(problem_.query.rows); ++b) {
      begin_block(b);
      const Index count = s_.block.count();
      const Index step = problem_.blocks == nullptr ? mask::BlockMap::kBlock : kMaskedRows;
      const std::span<const mask::BlockEntry> entries = s_.block.entries();
      for (Index r = 0; r < count; r += step) {
        const mask::Range rows{r, std::min(r + step, count)};
        begin_tile(rows);
        for (std::size_t e = 0; e < entries.size(); e += kStep) {
          const auto some = entries.subspan(e, std::min<std::size_t>(kStep, entries.size() - e));
          const Index columns = s_.block.find(rows, some, Placement::kClose);
          if (columns > 0) run_tile(rows, columns);
        }
        end_tile(rows);
      }
    }
  }

  void run_tile(mask::Range rows, Index columns) {
    const MatrixView<T> weights = s_.weights.shape(rows.size(), columns);
    const MatrixView<T> d = s_.d.shape(rows.size(), columns);
    make_weights(rows, weights);
    make_d_weights(d);
    MatrixView<T> met = weights;
    if (b_.attention.dropout > 0 || operands_ == Operands::kRounded) {
      met = s_.dropped.shape(rows.size(), columns);
      if (b_.attention.dropout > 0) {
        // The factors first: both the weights and their gradients need them.
        for (Index r = 0; r < met.rows; ++r) std::fill_n(met.row(r), columns, T{1});
        drop<T>(b_.attention, head_, s_.block.first() + rows.begin, s_.block.runs(), met);
        tile::multiply_elements<T>(d, met, d);
        tile::multiply_elements<T>(weights, met, met);
      } else {
        for (Index r = 0; r < met.rows; ++r) std::copy_n(weights.row(r), columns, met.row(r));
      }
    }
    add_value_products(rows, met);
    make_d_scores(rows, weights, d);
    add_score_products(rows, d);
  }

  /// All stages for the whole head one after the other, the terms between them.
  void run_whole() {
    const Index queries = problem_.query.rows;
    const Index keys = problem_.key.rows;
    const Index columns = width(keys);
    const MatrixView<T> weights = s_.weights.zeros(queries, columns);
    const MatrixView<T> d = s_.d.zeros(queries, columns);
    for_blocks([&](Index first, mask::Range rows) {
      make_weights(rows, weights.middle_rows(first, rows.size()));
      make_d_weights(d.middle_rows(first, rows.size()));
    });
    const MatrixView<T> met = s_.dropped.shape(queries, columns);
    for (Index i = 0; i < queries; ++i) std::copy_n(weights.row(i), columns, met.row(i));
    const TileRun all{{0, keys}, 0};
    if (b_.attention.weight_terms != nullptr) {
      b_.attention.weight_terms->multiply(head_, met.middle_columns(0, keys));
    }
    drop<T>(b_.attention, head_, 0, {&all, 1}, met);
    const auto part = [&](MatrixView<T> x) { return x.middle_columns(0, keys); };
    if (b_.gradients.value_terms != nullptr) {
      b_.gradients.value_terms->add_backward(head_, part(met), s_.d_context.plain(), part(d));
    }
    drop<T>(b_.attention, head_, 0, {&all, 1}, d);
    if (b_.gradients.weight_terms != nullptr) {
      b_.gradients.weight_terms->multiply_backward(head_, part(weights), part(d));
    }
    for_blocks([&](Index first, mask::Range rows) {
      add_value_products(rows, met.middle_rows(first, rows.size()));
      make_d_scores(rows, weights.middle_rows(first, rows.size()),
                    d.middle_rows(first, rows.size()));
    });
    if (b_.gradients.bias != nullptr) bias_backward(part(d));
    for_blocks([&](Index first, mask::Range rows) {
      add_score_products(rows, d.middle_rows(first, rows.size()));
      end_tile(rows);
    });
  }

  /// d (T, S): gradients of the scores that the terms were added to.
  void bias_backward(MatrixView<const T> d) {
    const MatrixView<const T> query = s_.query.plain(), key = s_.key.plain();
    const auto backward = [&](MatrixView<const T> of, MatrixView<T> d_key) {
      b_.gradients.bias->backward(head_, query, key, of, d_query_,
                                  d_key.middle_columns(0, key.columns));
    };
    if (!parted()) return backward(d, d_key_);
    const TileRun all{{0, d.columns}, 0};
    backward(part_of(Keys::kOwn, 0, d, {&all, 1}), d_key_);
    backward(part_of(Keys::kEarlier, 0, d, {&all, 1}), d_earlier_key_);
  }

  /// x with 0 where a key is not one of these; row 0 is query `first`.
  MatrixView<T> part_of(Keys keys, Index first, MatrixView<const T> x,
                        std::span<const TileRun> runs) {
    const MatrixView<T> made = s_.part.shape(x.rows, x.columns);
    copy_part<T>(keys, own_keys(first, x.rows), x, runs, made);
    return made;
  }
  std::span<const Index> own_keys(Index first, Index count) const {
    return b_.own_keys.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

  /// Calls work(first query, rows of the block) with all keys of each block found.
  template <class Work>
  void for_blocks(const Work& work) {
    for (Index b = 0; b < blocks_of(problem_.query.rows); ++b) {
      begin_block(b);
      const mask::Range rows{0, s_.block.count()};
      s_.block.find(rows, s_.block.entries(), Placement::kByKey);
      begin_tile(rows);
      work(s_.block.first(), rows);
    }
  }

  void begin_block(Index b) {
    s_.block.begin(operands(), b);
    s_.rows.clear();
    const Index heads = problem_.num_heads;
    const auto context = reference::columns_of(b_.context, head_, heads);
    const auto d_context = reference::columns_of(b_.d_context, head_, heads);
    const bool shifted = problem_.normalizer->map() == ScoreMap::kExp;
    for (Index r = 0; r < s_.block.count(); ++r) {
      const Index i = s_.block.first() + r;
      // Σ_j a_ij (∂/∂a_ij) is the same as the context along its own gradient: both are linear.
      const T along = tile::inner_product<T>(context.row_span(i), d_context.row_span(i));
      const T divisor = shifted ? T{1} : b_.saved.at(head_, i);
      s_.rows.push_back({along, divisor, s_.block.temperature(r)});
    }
  }

  void begin_tile(mask::Range rows) {
    const Index first = s_.block.first() + rows.begin;
    const auto d_context = s_.d_context.product().middle_rows(first, rows.size());
    s_.packed_d_context.pack(d_context, operands_);
    s_.packed_query.pack(pairs() ? s_.query.product().middle_rows(first, rows.size())
                                 : s_.block.query().middle_rows(rows.begin, rows.size()),
                         operands_);
    d_context_ = left_operand<T>(d_context, operands_, s_.d_context_pairs);
    d_query_tile_ = s_.d_query_tile.zeros(rows.size(), width(s_.query.plain().columns));
  }

  void end_tile(mask::Range rows) {
    const auto count = static_cast<std::size_t>(rows.size());
    // Pairs have been multiplied with them already.
    const auto factors =
        pairs() ? ones(count)
                : s_.block.factors().subspan(static_cast<std::size_t>(rows.begin), count);
    const Index first = s_.block.first() + rows.begin;
    tile::add_scaled_rows<T>(d_query_tile_.middle_columns(0, d_query_.columns), factors,
                             d_query_.middle_rows(first, rows.size()));
  }

  void make_weights(mask::Range rows, MatrixView<T> x) const {
    if (x.empty()) return;
    // Columns of no run stay 0: they are a weight already.
    s_.block.make_scores(operands(), rows, x);
    const std::span<const T> numbers =
        b_.saved.row_span(head_).subspan(static_cast<std::size_t>(s_.block.first() + rows.begin),
                                         static_cast<std::size_t>(rows.size()));
    for (const TileRun& run : s_.block.runs()) {
      tile::weights_of_scores<T>(problem_.normalizer->map(), numbers,
                                 x.middle_columns(run.column, run.keys.size()));
    }
  }

  void make_d_weights(MatrixView<T> d) const {
    const auto factors = ones(static_cast<std::size_t>(d.rows));
    for (const TileRun& run : s_.block.runs()) {
      multiply_rows<T>(d_context_, s_.value_transposed, run.keys.begin, factors,
                       d.middle_columns(run.column, run.keys.size()));
    }
  }

  void make_d_scores(mask::Range rows, MatrixView<const T> weights, MatrixView<T> d) const {
    const AttentionNormalizer& normalizer = *problem_.normalizer;
    const std::span<const tile::GradientRow<T>> numbers(s_.rows.data() + rows.begin,
                                                        static_cast<std::size_t>(rows.size()));
    tile::score_gradients<T>(normalizer.map(), normalizer.divisor(), weights, numbers, d);
  }

  /// Of each run: rows of its keys of `sums` += xᵀ · b, of earlier keys those of `earlier`. x
  /// becomes a rounded operand. The rows are those from rows.begin of the block on.
  void add_transposed_products(mask::Range rows, MatrixView<T> x, const PackedMatrix<T>& b,
                               MatrixView<T> sums, MatrixView<T> earlier) {
    if (!parted()) return add_transposed_products(x, b, sums, {0, problem_.key.rows});
    const Index first = s_.block.first() + rows.begin;
    const auto [least, most] = std::ranges::minmax(own_keys(first, rows.size()));
    add_transposed_products(part_of(Keys::kOwn, first, x, s_.block.runs()), b, sums,
                            {least, problem_.key.rows});
    add_transposed_products(part_of(Keys::kEarlier, first, x, s_.block.runs()), b, earlier,
                            {0, most});
    if (operands_ == Operands::kRounded) to_left_operand(x, operands_);
  }

  /// The same of runs with a key of `some_keys`, all into `sums`.
  void add_transposed_products(MatrixView<T> x, const PackedMatrix<T>& b, MatrixView<T> sums,
                               mask::Range some_keys) {
    MatrixView<const T> left = x;
    if constexpr (std::is_same_v<T, float>) {
      if (pairs()) {
        const MatrixView<T> made = s_.row_pairs.shape(tile::pairs_of(x.rows), x.columns);
        tile::to_row_pairs(x, made);
        left = made;
      }
    }
    if (operands_ == Operands::kRounded) to_left_operand(x, operands_);
    for (const TileRun& run : s_.block.runs()) {
      if (run.keys.end <= some_keys.begin || run.keys.begin >= some_keys.end) continue;
      const Index keys = keys_of(run, problem_.key.rows);
      const MatrixView<const T> some = left.middle_columns(run.column, keys);
      const MatrixView<T> to = sums.middle_rows(run.keys.begin, keys);
      if constexpr (std::is_same_v<T, float>) {
        if (pairs()) {
          tile::add_transposed_product_of_pairs(some, b.whole(), to);
          continue;
        }
      }
      tile::add_transposed_product<T>(some, b.whole(), to);
    }
  }

  /// d_value += aᵀ d_context.
  void add_value_products(mask::Range rows, MatrixView<T> weights) {
    add_transposed_products(rows, weights, s_.packed_d_context, d_value_, d_earlier_value_);
  }

  /// d_query += d K and d_key += dᵀ Q. The rows are those from rows.begin of the block on.
  void add_score_products(mask::Range rows, MatrixView<T> d) {
    for (Index r = 0; r < d.rows && pairs(); ++r) {
      const T factor = s_.block.factors()[static_cast<std::size_t>(rows.begin + r)];
      tile::multiply_row<T>(d.row_span(r), factor, d.row(r));
    }
    add_transposed_products(rows, d, s_.packed_query, d_key_, d_earlier_key_);
    if (pairs()) to_left_operand(d, operands_);
    for (const TileRun& run : s_.block.runs()) {
      add_product<T>(d, run, keys_of(run, problem_.key.rows), s_.packed_key, d_query_tile_);
    }
  }

  const DifferentiableBackward<T>& b_;
  const AttentionProblem<T>& problem_;
  Index group_;
  Operands operands_;
  BackwardMemory<T>& s_;
  Index head_ = 0;
  std::unique_ptr<HeadBias<T>> bias_;
  MatrixView<T> d_key_, d_value_, d_earlier_key_, d_earlier_value_, d_query_, d_query_tile_;
  MatrixView<const T> d_context_;
};

}  // namespace

template <class T>
void backward_key_head(const DifferentiableBackward<T>& sequence, Index group) {
  thread_local BackwardMemory<T> scratch;
  Backward<T>(sequence, group, scratch).run();
}

template void backward_key_head(const DifferentiableBackward<float>&, Index);
template void backward_key_head(const DifferentiableBackward<double>&, Index);

}  // namespace masque::nn::differentiable
