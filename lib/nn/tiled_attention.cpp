#include "nn/tiled_attention.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernel/parallel.hpp"
#include "nn/round.hpp"
#include "nn/tile_pairs.hpp"
#include "nn/tile_walk.hpp"
#include "nn/unit_length.hpp"

namespace masque::nn {

namespace {

/// Keys and values of one key head, packed.
template <class T>
class PackedHead {
 public:
  /// Room for them.
  void resize(Operands operands, Index keys, Index head_size, Index value_size) {
    operands_ = operands;
    key_.resize(kernel::strips_of<T>(keys), depth(head_size) * tile::kLanes<T>);
    value_.resize(kernel::strips_of<T>(value_size), depth(keys) * tile::kLanes<T>);
  }
  /// Packs some of the rows; `first` is a multiple of kLanes.
  void pack(MatrixView<const T> key, MatrixView<const T> value, Index first, Index count) {
    key = key.middle_rows(first, count);
    value = value.middle_rows(first, count);
    const tile::Strips<T> to_key{key_.view().row(first / tile::kLanes<T>), key_.columns()};
    const tile::Strips<T> to_value =
        tile::Strips<T>{value_.data(), value_.columns()}.from_depth(depth(first));
    if constexpr (std::is_same_v<T, float>) {
      if (operands_ == Operands::kPairs) {
        tile::pack_pairs_transposed(key, to_key);
        return tile::pack_pairs(value, to_value);
      }
    }
    if (operands_ == Operands::kRounded) {
      tile::pack_transposed<T>(rounded(key).view(), to_key);
      return tile::pack<T>(rounded(value).view(), to_value);
    }
    tile::pack_transposed(key, to_key);
    tile::pack(value, to_value);
  }
  tile::Strips<const T> key() const { return {key_.data(), key_.columns()}; }
  tile::Strips<const T> value() const { return {value_.data(), value_.columns()}; }

 private:
  /// Elements along the depth of a product.
  Index depth(Index n) const { return operands_ == Operands::kPairs ? tile::pairs_of(n) : n; }

  Operands operands_ = Operands::kPlain;
  Matrix<T> key_;
  Matrix<T> value_;
};

template <class T>
class TiledAttention {
 public:
  TiledAttention(const AttentionProblem<T>& problem, MatrixView<T> context, Index step)
      : problem_(problem),
        context_(context),
        step_(step),
        groups_(problem.num_key_value_heads),
        heads_per_group_(problem.num_heads / groups_),
        head_size_(problem.key.columns / groups_),
        value_size_(problem.value.columns / groups_) {
    if (problem.bf16) {
      operands_ =
          std::is_same_v<T, float> && tile::has_pairs() ? Operands::kPairs : Operands::kRounded;
    }
  }

  /// Heads on different threads, each with its own packed keys and values.
  void by_heads(const WeightsVisitor<T>& visit) {
    kernel::parallel_items(groups_, [&](Index group) {
      thread_local PackedHead<T> packed;
      packed.resize(operands_, keys(), head_size_, value_size_);
      packed.pack(key(group), value(group), 0, keys());
      Matrix<T> weights(visit ? queries() : 0, visit ? keys() : 0);
      for (Index head = group * heads_per_group_; head < (group + 1) * heads_per_group_; ++head) {
        const auto bias = bias_of(head, group);
        if (visit) {
          std::fill(weights.span().begin(), weights.span().end(), T{});
          clear_details(head);
        }
        for (Index block = 0; block < query_blocks(); ++block) {
          walk(head, block, packed, bias.get(), weights.view());
        }
        if (visit) visit(head, weights.view());
      }
    });
  }

  /// One key head after the other, its query blocks on different threads.
  void by_query_blocks() {
    PackedHead<T> packed;
    packed.resize(operands_, keys(), head_size_, value_size_);
    for (Index group = 0; group < groups_; ++group) {
      constexpr Index kChunk = 32 * tile::kLanes<T>;
      kernel::parallel_items((keys() + kChunk - 1) / kChunk, [&](Index i) {
        packed.pack(key(group), value(group), i * kChunk, std::min(kChunk, keys() - i * kChunk));
      });
      for (Index head = group * heads_per_group_; head < (group + 1) * heads_per_group_; ++head) {
        const auto bias = bias_of(head, group);
        kernel::parallel_items(query_blocks(), [&](Index i) {
          // Under a causal mask the last blocks are the longest: they start first.
          walk(head, query_blocks() - 1 - i, packed, bias.get(), {});
        });
      }
    }
  }

  Index groups() const { return groups_; }

 private:
  Index queries() const { return problem_.query.rows; }
  Index keys() const { return problem_.key.rows; }
  Index query_blocks() const {
    return (queries() + mask::BlockMap::kBlock - 1) / mask::BlockMap::kBlock;
  }
  MatrixView<const T> query(Index head) const {
    return problem_.query.middle_columns(head * head_size_, head_size_);
  }
  MatrixView<const T> key(Index group) const {
    return problem_.key.middle_columns(group * head_size_, head_size_);
  }
  MatrixView<const T> value(Index group) const {
    return problem_.value.middle_columns(group * value_size_, value_size_);
  }

  std::unique_ptr<HeadBias<T>> bias_of(Index head, Index group) const {
    if (problem_.bias == nullptr) return nullptr;
    return problem_.bias->head(head, query(head), key(group));
  }

  /// What no tile fills.
  void clear_details(Index head) const {
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    if (!problem_.log_divisors.empty())
      std::ranges::fill(problem_.log_divisors.row_span(head), kNone);
    for (Index i = 0; i < queries() && !problem_.scores.empty(); ++i)
      std::ranges::fill(problem_.scores.row_span(head * queries() + i), kNone);
  }

  void walk(Index head, Index block, const PackedHead<T>& packed, const HeadBias<T>* bias,
            MatrixView<T> weights) const {
    const Index first = block * mask::BlockMap::kBlock;
    const Index count = std::min(mask::BlockMap::kBlock, queries() - first);
    BlockRow<T> row;
    row.first_query = first;
    row.query = query(head).middle_rows(first, count);
    row.operands = operands_;
    row.key = packed.key();
    row.value = packed.value();
    row.keys = keys();
    row.scale = problem_.scale;
    row.normalizer = problem_.normalizer;
    row.bias = bias;
    row.blocks = mask::blocks_of_head(problem_.blocks, head);
    row.context =
        context_.middle_columns(head * value_size_, value_size_).middle_rows(first, count);
    if (!weights.empty()) {
      row.weights = weights.middle_rows(first, count);
      if (!problem_.log_divisors.empty()) {
        row.log_divisors = problem_.log_divisors.row_span(head).subspan(
            static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      }
      if (!problem_.scores.empty())
        row.scores = problem_.scores.middle_rows(head * queries() + first, count);
    }
    walk_block_row(row, step_);
  }

  const AttentionProblem<T>& problem_;
  MatrixView<T> context_;
  Index step_;
  Index groups_;
  Index heads_per_group_;
  Index head_size_;
  Index value_size_;
  Operands operands_ = Operands::kPlain;
};

}  // namespace

template <class T>
void attention_by_tiles(const AttentionProblem<T>& problem, MatrixView<T> context,
                        const WeightsVisitor<T>& visit, Index step) {
  check_problem(problem, context);
  const Index all = (problem.key.rows + mask::BlockMap::kBlock - 1) / mask::BlockMap::kBlock;
  const OperandProblem<T> operands(problem);
  TiledAttention<T> attention(operands.get(), context, visit ? all : std::min(step, all));
  const Index threads = kernel::threads();
  const Index groups = attention.groups();
  // Few heads that do not divide by the threads would leave some of them without work.
  if (visit || threads == 1 || groups % threads == 0 || groups >= 4 * threads) {
    attention.by_heads(visit);
  } else {
    attention.by_query_blocks();
  }
}

template void attention_by_tiles(const AttentionProblem<float>&, MatrixView<float>,
                                 const WeightsVisitor<float>&, Index);
template void attention_by_tiles(const AttentionProblem<double>&, MatrixView<double>,
                                 const WeightsVisitor<double>&, Index);

}  // namespace masque::nn
