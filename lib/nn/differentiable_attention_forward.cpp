#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "nn/attention_reference.hpp"
#include "nn/differentiable_attention_block.hpp"
#include "nn/unit_length.hpp"

namespace masque::nn::differentiable {

namespace {

/// Buffers of a thread.
template <class T>
struct ForwardMemory {
  TileOperand<T> query, key, value;
  PackedMatrix<T> key_transposed, packed_value;
  QueryBlock<T> block;
  PaddedMatrix<T> weights, sums, context;
  std::vector<tile::RowState<T>> states;
};

template <class T>
class Forward {
 public:
  Forward(const DifferentiableForward<T>& sequence, Index group, ForwardMemory<T>& scratch)
      : f_(sequence),
        problem_(sequence.attention.problem),
        group_(group),
        operands_(operands_of(sequence.attention.problem)),
        s_(scratch) {}

  void run() {
    const Index groups = problem_.num_key_value_heads;
    const AttentionNormalizer& normalizer = *problem_.normalizer;
    s_.key.take(reference::columns_of(problem_.key, group_, groups), unit_keys(normalizer),
                operands_);
    s_.value.take(reference::columns_of(problem_.value, group_, groups), false, operands_);
    s_.key_transposed.pack_transposed(s_.key.product(), operands_);
    s_.packed_value.pack(s_.value.product(), operands_);
    const Index heads = problem_.num_heads / groups;
    for (Index head = group_ * heads; head < (group_ + 1) * heads; ++head) run_head(head);
  }

 private:
  bool needs_full_weights() const {
    return f_.attention.weight_terms != nullptr || f_.attention.value_terms != nullptr;
  }

  void run_head(Index head) {
    s_.query.take(reference::columns_of(problem_.query, head, problem_.num_heads),
                  unit_queries(*problem_.normalizer), operands_);
    std::unique_ptr<HeadBias<T>> bias;
    if (problem_.bias != nullptr) {
      bias = problem_.bias->head(head, s_.query.plain(), s_.key.plain());
    }
    const HeadOperands<T> operands{&problem_, &s_.query, &s_.key_transposed, bias.get(),
                                   mask::blocks_of_head(problem_.blocks, head)};
    out_ = reference::columns_of(f_.context, head, problem_.num_heads);
    const Index queries = problem_.query.rows;
    const Index keys = problem_.key.rows;
    const MatrixView<T> all = needs_full_weights()
                                  ? s_.weights.shape(queries, tile::round_up(keys, tile::kLanes<T>))
                                  : MatrixView<T>();
    for (Index b = 0; b < blocks_of(queries); ++b) {
      s_.block.begin(operands, b);
      for (const mask::Range& rows : tiles(s_.block.count())) {
        if (needs_full_weights()) {
          const MatrixView<T> some = all.middle_rows(s_.block.first() + rows.begin, rows.size());
          std::fill_n(some.data, some.rows * some.stride, -std::numeric_limits<T>::infinity());
          s_.block.find(rows, s_.block.entries(), Placement::kByKey);
          make_weights(operands, head, rows, some);
        } else {
          const Index width = s_.block.find(rows, s_.block.entries(), Placement::kClose);
          const MatrixView<T> some = s_.weights.shape(rows.size(), width);
          make_weights(operands, head, rows, some);
          const Index first = s_.block.first() + rows.begin;
          drop<T>(f_.attention, head, first, s_.block.runs(), some);
          for (Index r = 0; r < rows.size(); ++r)
            std::fill_n(out_.row(first + r), out_.columns, T{});
          add_values(first, some);
        }
      }
    }
    if (needs_full_weights()) finish_whole(operands, head, all.middle_columns(0, keys));
  }

  /// The terms see all weights of a head.
  void finish_whole(const HeadOperands<T>& operands, Index head, MatrixView<T> weights) {
    if (f_.attention.weight_terms != nullptr) f_.attention.weight_terms->multiply(head, weights);
    const TileRun all{{0, weights.columns}, 0};
    drop<T>(f_.attention, head, 0, {&all, 1}, weights);
    for (Index i = 0; i < out_.rows; ++i) std::fill_n(out_.row(i), out_.columns, T{});
    if (f_.attention.value_terms != nullptr) {
      f_.attention.value_terms->add(head, weights, out_);
    }
    for (Index b = 0; b < blocks_of(weights.rows); ++b) {
      s_.block.begin(operands, b);
      s_.block.find({0, s_.block.count()}, s_.block.entries(), Placement::kByKey);
      add_values(s_.block.first(), weights.middle_rows(s_.block.first(), s_.block.count()));
    }
  }

  /// Rows of a block in tiles as equal as possible.
  static std::vector<mask::Range> tiles(Index rows) {
    const Index count = (rows + tile::kRows - 1) / tile::kRows;
    std::vector<mask::Range> out;
    out.reserve(static_cast<std::size_t>(count));
    for (Index i = 0; i < count; ++i) out.push_back({rows * i / count, rows * (i + 1) / count});
    return out;
  }

  /// Scores, then weights; also saves a number for each row.
  void make_weights(const HeadOperands<T>& operands, Index head, mask::Range rows,
                    MatrixView<T> x) {
    s_.block.make_scores(operands, rows, x);
    const ScoreMap map = problem_.normalizer->map();
    const Divisor divisor = problem_.normalizer->divisor();
    const bool squares = divisor == Divisor::kRootSquares;
    const bool shifted = map == ScoreMap::kExp && divisor != Divisor::kConstant;
    const MatrixView<T> sums = s_.sums.zeros(rows.size(), tile::kLanes<T>);
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    s_.states.assign(static_cast<std::size_t>(rows.size()), {kNone});
    if (map == ScoreMap::kSquaredRelu) {
      tile::map_squared_relu(x, squares, sums);
    } else if (map == ScoreMap::kSigmoid) {
      tile::map_sigmoid(x, squares, sums);
    } else if (!shifted) {
      tile::map_exp(x);
    } else {
      tile::map_exp_shifted<T>(x, s_.states, squares, sums);
    }
    for (Index r = 0; r < rows.size(); ++r) {
      const Index visible = s_.block.visible(rows.begin + r);
      T d{};
      if (divisor == Divisor::kConstant) {
        d = visible == 0 ? T{} : static_cast<T>(problem_.normalizer->constant(visible));
      } else {
        d = tile::sum_lanes<T>(sums.row(r));
        if (squares) d = std::sqrt(d);
      }
      divide(x.row_span(r), d);
      if (f_.saved.data == nullptr) continue;
      const T shift = shifted ? s_.states[static_cast<std::size_t>(r)].largest : T{};
      T& saved = f_.saved.at(head, s_.block.first() + rows.begin + r);
      saved = d == 0 ? -kNone : map == ScoreMap::kExp ? std::log(d) + shift : d;
    }
  }

  static void divide(std::span<T> row, T d) {
    if (d == 0) {
      std::fill(row.begin(), row.end(), T{});
    } else if (d >= 1) {
      tile::multiply_row<T>(row, 1 / d, row.data());
    } else {
      // The reciprocal may overflow.
      for (T& x : row) x /= d;
    }
  }

  /// Adds to the context of rows from query `first` on; the keys are those found last.
  void add_values(Index first, MatrixView<T> weights) {
    to_left_operand(weights, operands_);
    const MatrixView<T> sums =
        s_.context.zeros(weights.rows, tile::round_up(out_.columns, tile::kLanes<T>));
    for (const TileRun& run : s_.block.runs()) {
      add_product<T>(weights, run, keys_of(run, problem_.key.rows), s_.packed_value, sums);
    }
    for (Index r = 0; r < weights.rows; ++r) {
      T* to = out_.row(first + r);
      for (Index e = 0; e < out_.columns; ++e) to[e] += sums.at(r, e);
    }
  }

  const DifferentiableForward<T>& f_;
  const AttentionProblem<T>& problem_;
  Index group_;
  Operands operands_;
  ForwardMemory<T>& s_;
  MatrixView<T> out_;
};

}  // namespace

template <class T>
void forward_key_head(const DifferentiableForward<T>& sequence, Index group) {
  thread_local ForwardMemory<T> scratch;
  Forward<T>(sequence, group, scratch).run();
}

template void forward_key_head(const DifferentiableForward<float>&, Index);
template void forward_key_head(const DifferentiableForward<double>&, Index);

}  // namespace masque::nn::differentiable
