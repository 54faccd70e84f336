#include "nn/attention/attention_evaluation.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "nn/attention/attention_reference.hpp"
#include "nn/attention/query_block.hpp"
#include "nn/attention/round.hpp"
#include "nn/attention/unit_length.hpp"
#include "nn/variant.hpp"

namespace masque::nn {

namespace {

/// dense is the definition. block: a tile of queries keeps the scores of all keys that it sees.
/// long: keys come in steps; the scores of 4 blocks, 256 keys, stay in the first cache.
constexpr AttentionEvaluation kEvaluations[] = {
    {"block", "2 pairs d, memory 64 n a thread", "Vaswani et al. 2017, arXiv:1706.03762",
     std::numeric_limits<Index>::max()},
    {"dense", "2 n² d, memory n²", "Vaswani et al. 2017, arXiv:1706.03762"},
    {"long", "2 pairs d, memory n",
     "Milakov and Gimelshein 2018, arXiv:1805.02867; Rabe and Staats 2021, arXiv:2112.05682", 4},
};

std::vector<VariantInfo> list_variants() {
  std::vector<VariantInfo> out;
  for (const AttentionEvaluation& evaluation : kEvaluations) {
    VariantInfo info;
    info.kind = "evaluation";
    info.name = evaluation.name;
    info.masks = "any";
    info.cost = evaluation.cost;
    info.source = evaluation.source;
    out.push_back(std::move(info));
  }
  return out;
}

const VariantSource kVariants(list_variants);

/// Keys and values of one key head, packed.
template <class T>
struct PackedHead {
  PackedMatrix<T> key, value;
  PackedHead() = default;
  PackedHead(const AttentionProblem<T>& problem, OperandFormat operands) {
    resize(problem, operands);
  }
  /// Makes room for a key head of `problem`.
  void resize(const AttentionProblem<T>& problem, OperandFormat operands) {
    const Index keys = problem.key.rows, groups = problem.num_key_value_heads;
    key.resize(keys, problem.key.columns / groups, operands);
    value.resize(problem.value.columns / groups, keys, operands);
  }
  /// Packs `count` rows from `first` on, a multiple of kLanes.
  void pack(MatrixView<const T> keys, MatrixView<const T> values, Index first, Index count) {
    keys = keys.middle_rows(first, count);
    values = values.middle_rows(first, count);
    if (key.operands() == OperandFormat::kRounded) {
      key.pack_transposed_rows(rounded(keys).view(), first);
      return value.pack_rows(rounded(values).view(), first);
    }
    key.pack_transposed_rows(keys, first);
    value.pack_rows(values, first);
  }
};

/// Attention by tiles of queries that walk the visible key blocks of the mask.
template <class T>
class TiledAttention {
 public:
  /// The operands of `problem` have the lengths that its normalizer wants. With `visit` one step
  /// takes all keys.
  TiledAttention(const AttentionProblem<T>& problem, MatrixView<T> context,
                 const WeightsVisitor<T>& visit, Index step)
      : problem_(problem),
        context_(context),
        visit_(visit),
        step_(visit ? std::numeric_limits<Index>::max() : step),
        groups_(problem.num_key_value_heads),
        operands_(operands_of(problem)) {}

  void run() {
    const Index threads = kernel::threads();
    // Few heads that do not divide by the threads would leave some of them without work.
    if (visit_ || threads == 1 || groups_ % threads == 0 || groups_ >= 4 * threads) {
      kernel::parallel_items(groups_, [&](Index group) { run_group(group); });
    } else {
      run_query_blocks();
    }
  }

 private:
  /// A key head and the heads that read it, on the calling thread.
  void run_group(Index group) {
    thread_local PackedHead<T> packed;
    packed.resize(problem_, operands_);
    packed.pack(key(group), value(group), 0, keys());
    Matrix<T> weights(visit_ ? queries() : 0, visit_ ? keys() : 0);
    for_heads(group, [&](Index head) {
      const auto bias = bias_of(head, group);
      if (visit_) {
        std::fill(weights.span().begin(), weights.span().end(), T{});
        clear_details(head);
      }
      for (Index block = 0; block < block_count(queries()); ++block) {
        run_block(head, block, packed, bias.get(), weights.view());
      }
      if (visit_) visit_(head, weights.view());
    });
  }

  /// One key head after the other, its query blocks on different threads.
  void run_query_blocks() {
    PackedHead<T> packed(problem_, operands_);
    for (Index group = 0; group < groups_; ++group) {
      constexpr Index kChunk = 32 * tile::kLanes<T>;
      kernel::parallel_items(divide_up(keys(), kChunk), [&](Index i) {
        packed.pack(key(group), value(group), i * kChunk, std::min(kChunk, keys() - i * kChunk));
      });
      for_heads(group, [&](Index head) {
        const auto bias = bias_of(head, group);
        const Index blocks = block_count(queries());
        kernel::parallel_items(blocks, [&](Index i) {
          // Under a causal mask the last blocks are the longest: they start first.
          run_block(head, blocks - 1 - i, packed, bias.get(), {});
        });
      });
    }
  }

  template <class Work>
  void for_heads(Index group, const Work& work) const {
    const Index count = problem_.num_heads / groups_;
    for (Index head = group * count; head < (group + 1) * count; ++head) work(head);
  }

  Index queries() const { return problem_.query.rows; }
  Index keys() const { return problem_.key.rows; }
  MatrixView<const T> query(Index head) const {
    return reference::columns_of(problem_.query, head, problem_.num_heads);
  }
  MatrixView<const T> key(Index group) const {
    return reference::columns_of(problem_.key, group, groups_);
  }
  MatrixView<const T> value(Index group) const {
    return reference::columns_of(problem_.value, group, groups_);
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

  void run_block(Index head, Index block, const PackedHead<T>& packed, const HeadBias<T>* bias,
                 MatrixView<T> weights) const {
    thread_local BlockAttention<T> attention;
    const Index first = block * mask::BlockMap::kBlock;
    const Index count = std::min(mask::BlockMap::kBlock, queries() - first);
    const HeadOperands<T> operands{&problem_,
                                   query(head),
                                   &packed.key,
                                   bias,
                                   mask::blocks_of_head(problem_.blocks, head),
                                   sink_of(problem_, head)};
    BlockOutputs<T> out;
    out.context =
        reference::columns_of(context_, head, problem_.num_heads).middle_rows(first, count);
    if (!weights.empty()) {
      out.weights = weights.middle_rows(first, count);
      if (!problem_.log_divisors.empty()) {
        out.log_divisors = problem_.log_divisors.row_span(head).subspan(
            static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      }
      if (!problem_.scores.empty())
        out.scores = problem_.scores.middle_rows(head * queries() + first, count);
    }
    attention.run(operands, packed.value, block, step_, out);
  }

  const AttentionProblem<T>& problem_;
  MatrixView<T> context_;
  const WeightsVisitor<T>& visit_;
  Index step_;
  Index groups_;
  OperandFormat operands_;
};

}  // namespace

std::span<const AttentionEvaluation> attention_evaluations() { return kEvaluations; }

const AttentionEvaluation* find_attention_evaluation(std::string_view name) {
  const auto* const found = std::ranges::find(kEvaluations, name, &AttentionEvaluation::name);
  return found == std::end(kEvaluations) ? nullptr : found;
}

const AttentionEvaluation& choose_evaluation(Index keys) {
  // Up to here the scores of a tile stay in the second cache.
  constexpr Index kMostOfBlock = 1024;
  return *find_attention_evaluation(keys <= kMostOfBlock ? "block" : "long");
}

template <class T>
void evaluate_attention(const AttentionEvaluation& evaluation, const AttentionProblem<T>& problem,
                        MatrixView<T> context,
                        const std::type_identity_t<WeightsVisitor<T>>& visit) {
  check_problem(problem, context);
  if (evaluation.step == 0) {
    MASQUE_CHECK(problem.log_divisors.empty() && problem.scores.empty());
    return attention_reference(problem, context, visit);
  }
  const OperandProblem<T> operands(problem);
  TiledAttention<T>(operands.get(), context, visit, evaluation.step).run();
}

template void evaluate_attention(const AttentionEvaluation&, const AttentionProblem<float>&,
                                 MatrixView<float>, const WeightsVisitor<float>&);
template void evaluate_attention(const AttentionEvaluation&, const AttentionProblem<double>&,
                                 MatrixView<double>, const WeightsVisitor<double>&);

}  // namespace masque::nn
