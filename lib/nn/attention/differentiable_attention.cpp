#include "nn/attention/differentiable_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/dropout.hpp"
#include "kernel/parallel.hpp"
#include "nn/attention/attention_evaluation.hpp"
#include "nn/attention/attention_reference.hpp"
#include "nn/attention/query_block.hpp"
#include "nn/attention/round.hpp"
#include "nn/attention/tile_gradients.hpp"
#include "nn/attention/unit_length.hpp"

namespace masque::nn {

namespace {

/// Key blocks that the backward pass takes at once.
constexpr Index kStep = 4;
/// Queries that it takes at once under a mask: fewer follow its border more closely.
constexpr Index kMaskedRows = 32;

/// Columns of one head, at unit length and rounded where the problem wants it.
template <class T>
class TileOperand {
 public:
  /// Takes the columns `x` (rows, head size) of a head, which must outlive the use: with `unit`
  /// brought to length 1 row by row, rounded where `operands` is kRounded.
  void take(MatrixView<const T> x, bool unit, OperandFormat operands) {
    plain_ = x;
    if (unit) {
      unit_ = unit_rows(x, 1);
      plain_ = std::as_const(unit_).view();
    }
    product_ = plain_;
    // Pairs are rounded where they are made.
    if (operands != OperandFormat::kRounded) return;
    rounded_ = rounded(plain_);
    product_ = std::as_const(rounded_).view();
  }
  MatrixView<const T> plain() const { return plain_; }      ///< as position terms see it
  MatrixView<const T> product() const { return product_; }  ///< as products take it

 private:
  Matrix<T> unit_, rounded_;
  MatrixView<const T> plain_, product_;
};

/// Multiplies what is in the columns of `runs` in `x` with its dropout factors of `attention`. Row
/// 0 of x is query `first` of `head`.
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

/// Which keys a pass takes, by DifferentiableBackward::own_keys.
enum class Keys { kOwn, kEarlier };

/// `to` ← `x`, with 0 where a key of `runs` is not one of `keys`. `own_keys` has the
/// first own key of each row.
template <class T>
void copy_chosen(Keys keys, std::span<const Index> own_keys, MatrixView<const T> x,
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

/// Buffers of a thread.
template <class T>
struct ForwardMemory {
  TileOperand<T> query, key, value;
  PackedMatrix<T> key_transposed, packed_value;
  BlockAttention<T> attention;
  QueryBlock<T> block;            ///< with terms, after the weights
  PaddedMatrix<T> weights, sums;  ///< with terms, of a head
};

/// The forward pass of a key head of a sequence and of the query heads that read it.
template <class T>
class Forward {
 public:
  Forward(const DifferentiableForward<T>& sequence, Index group, ForwardMemory<T>& scratch)
      : pass_(sequence), problem_(sequence.attention.problem), group_(group), scratch_(scratch) {}

  void run() {
    const Index groups = problem_.num_key_value_heads;
    const OperandFormat operands = operands_of(problem_);
    scratch_.key.take(reference::columns_of(problem_.key, group_, groups),
                      unit_keys(*problem_.normalizer), operands);
    scratch_.value.take(reference::columns_of(problem_.value, group_, groups), false, operands);
    scratch_.key_transposed.pack_transposed(scratch_.key.product(), operands);
    scratch_.packed_value.pack(scratch_.value.product(), operands);
    const Index heads = problem_.num_heads / groups;
    for (Index head = group_ * heads; head < (group_ + 1) * heads; ++head) run_head(head);
  }

 private:
  void run_head(Index head) {
    scratch_.query.take(reference::columns_of(problem_.query, head, problem_.num_heads),
                        unit_queries(*problem_.normalizer), OperandFormat::kPlain);
    std::unique_ptr<HeadBias<T>> bias;
    if (problem_.bias != nullptr) {
      bias = problem_.bias->head(head, scratch_.query.plain(), scratch_.key.plain());
    }
    const HeadOperands<T> operands{&problem_,
                                   scratch_.query.plain(),
                                   &scratch_.key_transposed,
                                   bias.get(),
                                   mask::blocks_of_head(problem_.blocks, head),
                                   sink_of(problem_, head)};
    const MatrixView<T> context = reference::columns_of(pass_.context, head, problem_.num_heads);
    const bool terms =
        pass_.attention.weight_terms != nullptr || pass_.attention.value_terms != nullptr;
    const Index queries = problem_.query.rows, keys = problem_.key.rows;
    const MatrixView<T> weights =
        terms ? scratch_.weights.zeros(queries, round_up(keys, tile::kLanes<T>)) : MatrixView<T>();
    const NumeratorHook<T> hook = [&](Index first, std::span<const TileRun> runs, MatrixView<T> x) {
      drop<T>(pass_.attention, head, first, runs, x);
    };
    const bool hooked = pass_.attention.dropout > 0;
    // Terms need weights, and weights a single step.
    const Index step = terms ? block_count(keys) : choose_evaluation(keys).step;
    for (Index b = 0; b < block_count(queries); ++b) {
      const Index first = b * mask::BlockMap::kBlock;
      const Index count = std::min(mask::BlockMap::kBlock, queries - first);
      BlockOutputs<T> out;
      (terms ? out.weights : out.context) = (terms ? weights : context).middle_rows(first, count);
      if (pass_.saved.data != nullptr)
        out.saved = pass_.saved.row_span(head).subspan(static_cast<std::size_t>(first),
                                                       static_cast<std::size_t>(count));
      scratch_.attention.run(operands, scratch_.packed_value, b, step, out,
                             hooked ? &hook : nullptr);
    }
    if (terms) add_values(operands, head, weights.middle_columns(0, keys), context);
  }

  /// The terms see all weights of a head.
  void add_values(const HeadOperands<T>& operands, Index head, MatrixView<T> weights,
                  MatrixView<T> context) {
    if (pass_.attention.weight_terms != nullptr)
      pass_.attention.weight_terms->multiply(head, weights);
    const TileRun all{{0, weights.columns}, 0};
    drop<T>(pass_.attention, head, 0, {&all, 1}, weights);
    for (Index i = 0; i < context.rows; ++i) std::fill_n(context.row(i), context.columns, T{});
    if (pass_.attention.value_terms != nullptr)
      pass_.attention.value_terms->add(head, weights, context);
    for (Index b = 0; b < block_count(weights.rows); ++b) {
      scratch_.block.begin(operands, b);
      const Index first = scratch_.block.first(), count = scratch_.block.count();
      scratch_.block.find({0, count}, scratch_.block.entries(), Placement::kByKey);
      const MatrixView<T> x = weights.middle_rows(first, count);
      to_left_operand(x, scratch_.packed_value.operands());
      const MatrixView<T> sums =
          scratch_.sums.zeros(count, round_up(context.columns, tile::kLanes<T>));
      add_products<T>(x, scratch_.block.runs(), weights.columns, scratch_.packed_value, sums);
      for (Index r = 0; r < count; ++r) {
        T* const to = context.row(first + r);
        for (Index e = 0; e < context.columns; ++e) to[e] += sums.at(r, e);
      }
    }
  }

  const DifferentiableForward<T>& pass_;
  const AttentionProblem<T>& problem_;
  Index group_;
  ForwardMemory<T>& scratch_;
};

/// Buffers of a thread.
template <class T>
struct BackwardMemory {
  TileOperand<T> query, key, value, d_context;
  PackedMatrix<T> key_transposed, packed_key, value_transposed, packed_query, packed_d_context;
  QueryBlock<T> block;
  /// Of a tile or, with terms, of a head: weights, those that met the values, and gradients by
  /// weights, then by scores.
  PaddedMatrix<T> weights, dropped, d;
  PaddedMatrix<T> slopes;  ///< with a cap: of capped scores by the others
  PaddedMatrix<T> d_context_pairs, row_pairs;
  std::vector<T> ones;
  PaddedMatrix<T> d_query_tile;    ///< by scaled queries
  PaddedMatrix<T> d_query;         ///< of a head, by operands
  PaddedMatrix<T> d_key, d_value;  ///< of a key head, by operands
  PaddedMatrix<T> d_earlier_key, d_earlier_value;
  PaddedMatrix<T> chosen;                  ///< of a tile, or a head: what own or earlier keys have
  std::vector<tile::GradientRow<T>> rows;  ///< of a block
};

/// The backward pass of a key head of a sequence and of the query heads that read it.
template <class T>
class Backward {
 public:
  Backward(const DifferentiableBackward<T>& sequence, Index group, BackwardMemory<T>& scratch)
      : pass_(sequence),
        problem_(sequence.attention.problem),
        group_(group),
        operands_(operands_of(sequence.attention.problem)),
        scratch_(scratch) {}

  void run() {
    const Index groups = problem_.num_key_value_heads;
    const AttentionNormalizer& normalizer = *problem_.normalizer;
    const auto key = reference::columns_of(problem_.key, group_, groups);
    scratch_.key.take(key, unit_keys(normalizer), operands_);
    scratch_.value.take(reference::columns_of(problem_.value, group_, groups), false, operands_);
    scratch_.key_transposed.pack_transposed(scratch_.key.product(), operands_);
    scratch_.packed_key.pack(scratch_.key.product(), operands_);
    scratch_.value_transposed.pack_transposed(scratch_.value.product(), operands_);
    d_key_ = scratch_.d_key.zeros(key.rows, width(key.columns));
    d_value_ = scratch_.d_value.zeros(key.rows, width(scratch_.value.product().columns));
    if (has_earlier_keys()) {
      d_earlier_key_ = scratch_.d_earlier_key.zeros(key.rows, d_key_.columns);
      d_earlier_value_ = scratch_.d_earlier_value.zeros(key.rows, d_value_.columns);
    }
    const Index heads = problem_.num_heads / groups;
    for (Index head = group_ * heads; head < (group_ + 1) * heads; ++head) run_head(head);
    add_keys(key, d_key_, pass_.gradients.key);
    add_values(d_value_, pass_.gradients.value);
    if (!has_earlier_keys()) return;
    add_keys(key, d_earlier_key_, pass_.gradients.earlier_key);
    add_values(d_earlier_value_, pass_.gradients.earlier_value);
  }

 private:
  /// Whether some keys are earlier ones.
  bool has_earlier_keys() const { return !pass_.own_keys.empty(); }
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
  static Index width(Index columns) { return round_up(columns, tile::kLanes<T>); }
  void add_rows(MatrixView<const T> from, MatrixView<T> to) const {
    tile::add_scaled_rows<T>(from, ones(static_cast<std::size_t>(to.rows)), to);
  }
  std::span<const T> ones(std::size_t count) const {
    if (scratch_.ones.size() < count) scratch_.ones.assign(count, T{1});
    return std::span<const T>(scratch_.ones).first(count);
  }
  bool pairs() const { return operands_ == OperandFormat::kPairs; }
  /// Whether something must see all weights, or gradients, of a head.
  bool needs_full_weights() const {
    return pass_.attention.weight_terms != nullptr || pass_.attention.value_terms != nullptr ||
           pass_.gradients.bias != nullptr;
  }

  void run_head(Index head) {
    head_ = head;
    const Index heads = problem_.num_heads;
    const bool unit = unit_queries(*problem_.normalizer);
    const auto query = reference::columns_of(problem_.query, head, heads);
    scratch_.query.take(query, unit, OperandFormat::kPlain);
    scratch_.d_context.take(reference::columns_of(pass_.d_context, head, heads), false, operands_);
    bias_.reset();
    if (problem_.bias != nullptr) {
      bias_ = problem_.bias->head(head, scratch_.query.plain(), scratch_.key.plain());
    }
    head_operands_ = {&problem_, scratch_.query.plain(), &scratch_.key_transposed, bias_.get(),
                      mask::blocks_of_head(problem_.blocks, head)};
    const bool wanted = pass_.gradients.query.data != nullptr;
    const MatrixView<T> target =
        wanted ? reference::columns_of(pass_.gradients.query, head, heads) : MatrixView<T>();
    const bool direct = wanted && !unit;
    d_query_ = direct ? target : scratch_.d_query.zeros(query.rows, query.columns);
    if (needs_full_weights()) {
      run_whole();
    } else {
      run_tiles();
    }
    if (wanted && !direct) unit_rows_backward<T>(query, 1, d_query_, target);
  }

  void run_tiles() {
    for (Index b = 0; b < block_count(problem_.query.rows); ++b) {
      begin_block(b);
      const Index count = scratch_.block.count();
      const Index step = problem_.blocks == nullptr ? mask::BlockMap::kBlock : kMaskedRows;
      const std::span<const mask::BlockEntry> entries = scratch_.block.entries();
      for (Index r = 0; r < count; r += step) {
        const mask::Range rows{r, std::min(r + step, count)};
        begin_tile(rows);
        for (std::size_t e = 0; e < entries.size(); e += kStep) {
          const auto some = entries.subspan(e, std::min<std::size_t>(kStep, entries.size() - e));
          const Index columns = scratch_.block.find(rows, some, Placement::kClose);
          if (columns > 0) run_tile(rows, columns);
        }
        end_tile(rows);
      }
    }
  }

  void run_tile(mask::Range rows, Index columns) {
    const MatrixView<T> weights = scratch_.weights.shape(rows.size(), columns);
    const MatrixView<T> d = scratch_.d.shape(rows.size(), columns);
    const MatrixView<T> slopes = slopes_of(rows.size(), columns);
    make_weights(rows, weights, slopes);
    make_d_weights(d);
    MatrixView<T> met = weights;
    if (pass_.attention.dropout > 0 || operands_ == OperandFormat::kRounded) {
      met = scratch_.dropped.shape(rows.size(), columns);
      if (pass_.attention.dropout > 0) {
        // The factors first: both the weights and their gradients need them.
        for (Index r = 0; r < met.rows; ++r) std::fill_n(met.row(r), columns, T{1});
        drop<T>(pass_.attention, head_, scratch_.block.first() + rows.begin, scratch_.block.runs(),
                met);
        tile::multiply_elements<T>(d, met, d);
        tile::multiply_elements<T>(weights, met, met);
      } else {
        for (Index r = 0; r < met.rows; ++r) std::copy_n(weights.row(r), columns, met.row(r));
      }
    }
    add_value_products(rows, met);
    make_d_scores(rows, weights, d);
    if (problem_.cap > 0) tile::multiply_elements<T>(d, slopes, d);
    add_score_products(rows, d);
  }

  /// All stages for the whole head one after the other, the terms between them.
  void run_whole() {
    const Index queries = problem_.query.rows;
    const Index keys = problem_.key.rows;
    const Index columns = width(keys);
    const MatrixView<T> weights = scratch_.weights.zeros(queries, columns);
    const MatrixView<T> d = scratch_.d.zeros(queries, columns);
    const MatrixView<T> slopes = slopes_of(queries, columns);
    for_blocks([&](Index first, mask::Range rows) {
      make_weights(rows, weights.middle_rows(first, rows.size()),
                   slopes.middle_rows(first, slopes.empty() ? 0 : rows.size()));
      make_d_weights(d.middle_rows(first, rows.size()));
    });
    const MatrixView<T> met = scratch_.dropped.shape(queries, columns);
    for (Index i = 0; i < queries; ++i) std::copy_n(weights.row(i), columns, met.row(i));
    const TileRun all{{0, keys}, 0};
    if (pass_.attention.weight_terms != nullptr) {
      pass_.attention.weight_terms->multiply(head_, met.middle_columns(0, keys));
    }
    drop<T>(pass_.attention, head_, 0, {&all, 1}, met);
    const auto unpadded = [&](MatrixView<T> x) { return x.middle_columns(0, keys); };
    if (pass_.gradients.value_terms != nullptr) {
      pass_.gradients.value_terms->add_backward(head_, unpadded(met), scratch_.d_context.plain(),
                                                unpadded(d));
    }
    drop<T>(pass_.attention, head_, 0, {&all, 1}, d);
    if (pass_.gradients.weight_terms != nullptr) {
      pass_.gradients.weight_terms->multiply_backward(head_, unpadded(weights), unpadded(d));
    }
    for_blocks([&](Index first, mask::Range rows) {
      add_value_products(rows, met.middle_rows(first, rows.size()));
      make_d_scores(rows, weights.middle_rows(first, rows.size()),
                    d.middle_rows(first, rows.size()));
    });
    if (problem_.cap > 0) tile::multiply_elements<T>(d, slopes, d);
    if (pass_.gradients.bias != nullptr) bias_backward(unpadded(d));
    for_blocks([&](Index first, mask::Range rows) {
      add_score_products(rows, d.middle_rows(first, rows.size()));
      end_tile(rows);
    });
  }

  /// d (T, S): gradients of the scores that the terms were added to.
  void bias_backward(MatrixView<const T> d) {
    const MatrixView<const T> query = scratch_.query.plain(), key = scratch_.key.plain();
    const auto backward = [&](MatrixView<const T> of, MatrixView<T> d_key) {
      pass_.gradients.bias->backward(head_, query, key, of, d_query_,
                                     d_key.middle_columns(0, key.columns));
    };
    if (!has_earlier_keys()) return backward(d, d_key_);
    const TileRun all{{0, d.columns}, 0};
    backward(chosen_keys(Keys::kOwn, 0, d, {&all, 1}), d_key_);
    backward(chosen_keys(Keys::kEarlier, 0, d, {&all, 1}), d_earlier_key_);
  }

  /// x with 0 where a key is not one of these; row 0 is query `first`.
  MatrixView<T> chosen_keys(Keys keys, Index first, MatrixView<const T> x,
                            std::span<const TileRun> runs) {
    const MatrixView<T> made = scratch_.chosen.shape(x.rows, x.columns);
    copy_chosen<T>(keys, own_keys(first, x.rows), x, runs, made);
    return made;
  }
  std::span<const Index> own_keys(Index first, Index count) const {
    return pass_.own_keys.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

  /// Calls work(first query, rows of the block) with all keys of each block found.
  template <class Work>
  void for_blocks(const Work& work) {
    for (Index b = 0; b < block_count(problem_.query.rows); ++b) {
      begin_block(b);
      const mask::Range rows{0, scratch_.block.count()};
      scratch_.block.find(rows, scratch_.block.entries(), Placement::kByKey);
      begin_tile(rows);
      work(scratch_.block.first(), rows);
    }
  }

  void begin_block(Index b) {
    scratch_.block.begin(head_operands_, b);
    scratch_.rows.clear();
    const Index heads = problem_.num_heads;
    const auto context = reference::columns_of(pass_.context, head_, heads);
    const auto d_context = reference::columns_of(pass_.d_context, head_, heads);
    const bool logarithm = saves_logarithm(problem_.normalizer->map());
    for (Index r = 0; r < scratch_.block.count(); ++r) {
      const Index i = scratch_.block.first() + r;
      // Σ_j a_ij (∂/∂a_ij) is the same as the context along its own gradient: both are linear.
      const T along = tile::inner_product<T>(context.row_span(i), d_context.row_span(i));
      const T divisor = logarithm ? T{1} : pass_.saved.at(head_, i);
      scratch_.rows.push_back({along, divisor, scratch_.block.temperature(r)});
    }
  }

  void begin_tile(mask::Range rows) {
    const Index first = scratch_.block.first() + rows.begin;
    const auto d_context = scratch_.d_context.product().middle_rows(first, rows.size());
    scratch_.packed_d_context.pack(d_context, operands_);
    scratch_.packed_query.pack(pairs()
                                   ? scratch_.query.plain().middle_rows(first, rows.size())
                                   : scratch_.block.query().middle_rows(rows.begin, rows.size()),
                               operands_);
    d_context_ = d_context;
    if constexpr (std::is_same_v<T, float>) {
      if (pairs()) {
        MatrixView<T> made = scratch_.d_context_pairs.shape(d_context.rows, d_context.columns);
        tile::to_pairs(d_context, made);
        made.columns = tile::pairs_of(d_context.columns);
        d_context_ = made;
      }
    }
    d_query_tile_ = scratch_.d_query_tile.zeros(rows.size(), width(scratch_.query.plain().columns));
  }

  void end_tile(mask::Range rows) {
    const auto count = static_cast<std::size_t>(rows.size());
    // Pairs have been multiplied with them already.
    const auto factors =
        pairs() ? ones(count)
                : scratch_.block.factors().subspan(static_cast<std::size_t>(rows.begin), count);
    const Index first = scratch_.block.first() + rows.begin;
    tile::add_scaled_rows<T>(d_query_tile_.middle_columns(0, d_query_.columns), factors,
                             d_query_.middle_rows(first, rows.size()));
  }

  /// Memory for the slopes of a cap, of as many rows and columns as weights; empty without a cap.
  MatrixView<T> slopes_of(Index rows, Index columns) {
    return problem_.cap > 0 ? scratch_.slopes.zeros(rows, columns) : MatrixView<T>();
  }

  /// With a cap `slopes` become those of capped scores by the others, in the columns of the runs.
  void make_weights(mask::Range rows, MatrixView<T> x, MatrixView<T> slopes) const {
    if (x.empty()) return;
    // Columns of no run stay 0: they are a weight already.
    scratch_.block.make_scores(rows, x);
    for (Index r = 0; r < slopes.rows; ++r) {
      const double cap =
          problem_.cap * static_cast<double>(scratch_.block.temperature(rows.begin + r));
      for (const TileRun& run : scratch_.block.runs()) {
        const MatrixView<T> own(slopes.row(r) + run.column, 1, run.keys.size());
        std::fill_n(own.data, own.columns, T{1});
        kernel::soft_cap_backward<T>(
            cap, MatrixView<const T>(x.row(r) + run.column, 1, run.keys.size()), own);
      }
    }
    const std::span<const T> numbers = pass_.saved.row_span(head_).subspan(
        static_cast<std::size_t>(scratch_.block.first() + rows.begin),
        static_cast<std::size_t>(rows.size()));
    for (const TileRun& run : scratch_.block.runs()) {
      tile::weights_of_scores<T>(problem_.normalizer->map(), numbers,
                                 x.middle_columns(run.column, run.keys.size()));
    }
  }

  void make_d_weights(MatrixView<T> d) const {
    const auto factors = ones(static_cast<std::size_t>(d.rows));
    for (const TileRun& run : scratch_.block.runs()) {
      multiply_rows<T>(d_context_, scratch_.value_transposed, run.keys.begin, factors,
                       d.middle_columns(run.column, run.keys.size()));
    }
  }

  void make_d_scores(mask::Range rows, MatrixView<const T> weights, MatrixView<T> d) const {
    const AttentionNormalizer& normalizer = *problem_.normalizer;
    const std::span<const tile::GradientRow<T>> numbers(scratch_.rows.data() + rows.begin,
                                                        static_cast<std::size_t>(rows.size()));
    tile::score_gradients<T>(normalizer.map(), normalizer.divisor(), weights, numbers, d);
  }

  /// Of each run: rows of its keys of `sums` += xᵀ · b, of earlier keys those of `earlier`. x
  /// becomes a rounded operand. The rows are those from rows.begin of the block on.
  void add_transposed_products(mask::Range rows, MatrixView<T> x, const PackedMatrix<T>& b,
                               MatrixView<T> sums, MatrixView<T> earlier) {
    if (!has_earlier_keys()) return add_transposed_products(x, b, sums, {0, problem_.key.rows});
    const Index first = scratch_.block.first() + rows.begin;
    const auto [least, most] = std::ranges::minmax(own_keys(first, rows.size()));
    add_transposed_products(chosen_keys(Keys::kOwn, first, x, scratch_.block.runs()), b, sums,
                            {least, problem_.key.rows});
    add_transposed_products(chosen_keys(Keys::kEarlier, first, x, scratch_.block.runs()), b,
                            earlier, {0, most});
    if (operands_ == OperandFormat::kRounded) to_left_operand(x, operands_);
  }

  /// The same of runs with a key of `some_keys`, all into `sums`.
  void add_transposed_products(MatrixView<T> x, const PackedMatrix<T>& b, MatrixView<T> sums,
                               mask::Range some_keys) {
    MatrixView<const T> left = x;
    if constexpr (std::is_same_v<T, float>) {
      if (pairs()) {
        const MatrixView<T> made = scratch_.row_pairs.shape(tile::pairs_of(x.rows), x.columns);
        tile::to_row_pairs(x, made);
        left = made;
      }
    }
    if (operands_ == OperandFormat::kRounded) to_left_operand(x, operands_);
    for (const TileRun& run : scratch_.block.runs()) {
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
    add_transposed_products(rows, weights, scratch_.packed_d_context, d_value_, d_earlier_value_);
  }

  /// d_query += d K and d_key += dᵀ Q. The rows are those from rows.begin of the block on.
  void add_score_products(mask::Range rows, MatrixView<T> d) {
    for (Index r = 0; r < d.rows && pairs(); ++r) {
      const T factor = scratch_.block.factors()[static_cast<std::size_t>(rows.begin + r)];
      tile::multiply_row<T>(d.row_span(r), factor, d.row(r));
    }
    add_transposed_products(rows, d, scratch_.packed_query, d_key_, d_earlier_key_);
    if (pairs()) to_left_operand(d, operands_);
    add_products<T>(d, scratch_.block.runs(), problem_.key.rows, scratch_.packed_key,
                    d_query_tile_);
  }

  const DifferentiableBackward<T>& pass_;
  const AttentionProblem<T>& problem_;
  Index group_;
  OperandFormat operands_;
  BackwardMemory<T>& scratch_;
  Index head_ = 0;
  std::unique_ptr<HeadBias<T>> bias_;
  HeadOperands<T> head_operands_;
  MatrixView<T> d_key_, d_value_, d_earlier_key_, d_earlier_value_, d_query_, d_query_tile_;
  MatrixView<const T> d_context_;
};

/// A key head of a sequence.
struct Item {
  std::size_t sequence;
  Index group;
};

template <class Sequence>
std::vector<Item> items_of(std::span<const Sequence> sequences) {
  std::vector<Item> out;
  out.reserve(sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Index groups = sequences[i].attention.problem.num_key_value_heads;
    for (Index group = 0; group < groups; ++group) out.push_back({i, group});
  }
  return out;
}

template <class T>
void check_sequence(const DifferentiableAttention<T>& attention, Index rows, Index columns) {
  // Only its shape is read.
  check_problem(attention.problem, MatrixView<T>(nullptr, rows, columns));
  MASQUE_CHECK(attention.dropout >= 0 && attention.dropout < 1);
  MASQUE_CHECK(attention.problem.log_divisors.empty() && attention.problem.scores.empty());
}

template <class T>
bool fits(MatrixView<T> gradient, MatrixView<const T> x) {
  return gradient.data == nullptr || (gradient.rows == x.rows && gradient.columns == x.columns);
}

template <class T>
void check_gradients(const DifferentiableBackward<T>& s) {
  const AttentionProblem<T>& problem = s.attention.problem;
  check_sequence(s.attention, s.d_context.rows, s.d_context.columns);
  MASQUE_CHECK(s.context.rows == s.d_context.rows && s.context.columns == s.d_context.columns);
  MASQUE_CHECK(s.saved.rows == problem.num_heads && s.saved.columns == problem.query.rows);
  MASQUE_CHECK(fits(s.gradients.query, problem.query) && fits(s.gradients.key, problem.key) &&
               fits(s.gradients.value, problem.value) &&
               fits(s.gradients.earlier_key, problem.key) &&
               fits(s.gradients.earlier_value, problem.value));
  MASQUE_CHECK(s.own_keys.empty() || std::ssize(s.own_keys) == problem.query.rows);
  MASQUE_CHECK((s.gradients.weight_terms == nullptr) == (s.attention.weight_terms == nullptr));
  MASQUE_CHECK((s.gradients.value_terms == nullptr) == (s.attention.value_terms == nullptr));
  MASQUE_CHECK(s.gradients.bias == nullptr || problem.bias != nullptr);
}

template <class T>
bool has_terms(const DifferentiableGradients<T>& gradients) {
  return gradients.bias != nullptr || gradients.weight_terms != nullptr ||
         gradients.value_terms != nullptr;
}

}  // namespace

template <class T>
void differentiable_attention_forward(std::span<const DifferentiableForward<T>> sequences) {
  for (const DifferentiableForward<T>& s : sequences) {
    check_sequence(s.attention, s.context.rows, s.context.columns);
    MASQUE_CHECK(s.saved.data == nullptr || (s.saved.rows == s.attention.problem.num_heads &&
                                             s.saved.columns == s.context.rows));
  }
  const std::vector<Item> items = items_of(sequences);
  kernel::parallel_items(std::ssize(items), [&](Index i) {
    const Item& item = items[static_cast<std::size_t>(i)];
    thread_local ForwardMemory<T> scratch;
    Forward<T>(sequences[item.sequence], item.group, scratch).run();
  });
}

template <class T>
void differentiable_attention_backward(std::span<const DifferentiableBackward<T>> sequences) {
  for (const DifferentiableBackward<T>& s : sequences) check_gradients(s);
  const std::vector<Item> items = items_of(sequences);
  const auto run = [&](Index i) {
    const Item& item = items[static_cast<std::size_t>(i)];
    thread_local BackwardMemory<T> scratch;
    Backward<T>(sequences[item.sequence], item.group, scratch).run();
  };
  const bool in_order = std::any_of(sequences.begin(), sequences.end(),
                                    [](const auto& s) { return has_terms(s.gradients); });
  if (!in_order) return kernel::parallel_items(std::ssize(items), run);
  for (Index i = 0; i < std::ssize(items); ++i) run(i);
}

template <class T>
void add_sink_gradients(const DifferentiableBackward<T>& sequence, std::span<T> d_sinks) {
  const AttentionProblem<T>& problem = sequence.attention.problem;
  for (Index head = 0; head < problem.num_heads; ++head) {
    const auto context = reference::columns_of(sequence.context, head, problem.num_heads);
    const auto d_context = reference::columns_of(sequence.d_context, head, problem.num_heads);
    double sum = 0;
    for (Index i = 0; i < context.rows; ++i) {
      const double weight = std::exp(static_cast<double>(*sink_of(problem, head)) -
                                     static_cast<double>(sequence.saved.at(head, i)));
      // As in begin_block(): the context along its gradient is what a change of all weights does.
      sum -= weight * static_cast<double>(
                          tile::inner_product<T>(context.row_span(i), d_context.row_span(i)));
    }
    d_sinks[static_cast<std::size_t>(head)] += static_cast<T>(sum);
  }
}

template void add_sink_gradients(const DifferentiableBackward<float>&, std::span<float>);
template void add_sink_gradients(const DifferentiableBackward<double>&, std::span<double>);
template void differentiable_attention_forward(std::span<const DifferentiableForward<float>>);
template void differentiable_attention_forward(std::span<const DifferentiableForward<double>>);
template void differentiable_attention_backward(std::span<const DifferentiableBackward<float>>);
template void differentiable_attention_backward(std::span<const DifferentiableBackward<double>>);

}  // namespace masque::nn
