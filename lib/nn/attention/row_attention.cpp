#include "nn/attention/row_attention.hpp"

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "kernel/activation.hpp"
#include "kernel/number/lanes.hpp"
#include "kernel/parallel.hpp"
#include "kernel/softmax/softmax_rows.hpp"

namespace masque::nn {

namespace {

/// Some heads of a problem, those of a range of key heads. Heads and key heads are `size` (of
/// values `value_size`) columns each.
struct RowHeads {
  Index keys;
  Index groups;  ///< key heads
  Index heads_per_group;
  Index size;
  Index key_stride;
};

/// scores (heads, keys) = scale · q·k. Key after key, as they lie in memory.
template <class T>
void row_scores(const T* query, const T* key, RowHeads h, T scale, T* scores) {
  for (Index j = 0; j < h.keys; ++j, key += h.key_stride) {
    for (Index head = 0; head < h.groups * h.heads_per_group; ++head) {
      const T* const q = query + head * h.size;
      const T* const k = key + head / h.heads_per_group * h.size;
      T lanes[kernel::kLanes] = {};
      Index c = 0;
      for (; c + kernel::kLanes <= h.size; c += kernel::kLanes) {
        MASQUE_INDEPENDENT
        for (Index l = 0; l < kernel::kLanes; ++l) lanes[l] += q[c + l] * k[c + l];
      }
      for (Index l = 0; c + l < h.size; ++l) lanes[l] += q[c + l] * k[c + l];
      for (Index width = kernel::kLanes / 2; width > 0; width /= 2) {
        for (Index l = 0; l < width; ++l) lanes[l] += lanes[l + width];
      }
      scores[head * h.keys + j] = scale * lanes[0];
    }
  }
}

/// context (heads, size) = weights (heads, keys) times values.
template <class T>
void row_context(const T* weights, const T* value, RowHeads h, T* context) {
  std::fill_n(context, h.groups * h.heads_per_group * h.size, T{});
  for (Index j = 0; j < h.keys; ++j, value += h.key_stride) {
    for (Index head = 0; head < h.groups * h.heads_per_group; ++head) {
      const T weight = weights[head * h.keys + j];
      const T* const v = value + head / h.heads_per_group * h.size;
      T* const to = context + head * h.size;
      MASQUE_INDEPENDENT
      for (Index c = 0; c < h.size; ++c) to[c] += weight * v[c];
    }
  }
}

}  // namespace

template <class T>
bool fits_row_attention(const AttentionProblem<T>& p) {
  const Index keys = p.key.rows;
  if (p.query.rows != 1 || keys == 0) return false;
  if (p.blocks != nullptr && (p.blocks->by_head() || p.blocks->visible(0) != keys)) return false;
  const AttentionNormalizer& n = *p.normalizer;
  const bool softmax = n.map() == ScoreMap::kExp && n.divisor() == Divisor::kSum && n.scaled() &&
                       n.unit_length() == UnitLength::kNeither && n.temperature(keys) == 1;
  return softmax && p.bias == nullptr && p.sinks.empty() && !p.bf16 && p.log_divisors.empty() &&
         p.scores.empty();
}

template <class T>
void row_attention(const AttentionProblem<T>& p, MatrixView<T> context) {
  MASQUE_CHECK(fits_row_attention(p));
  check_problem(p, context);
  const Index groups = p.num_key_value_heads, per_group = p.num_heads / groups;
  const Index size = p.key.columns / groups, value_size = p.value.columns / groups;
  const Index keys = p.key.rows;
  const auto run = [&](Index begin, Index end) {
    thread_local Matrix<T> scores;
    const Index first = begin * per_group;
    scores.resize((end - begin) * per_group, keys);
    const T* const query = p.query.row(0) + first * size;
    T* const out = context.row(0) + first * value_size;
    const RowHeads of_keys{keys, end - begin, per_group, size, p.key.stride};
    const RowHeads of_values{keys, end - begin, per_group, value_size, p.value.stride};
    vectorized<row_scores<T>>(query, p.key.data + begin * size, of_keys, static_cast<T>(p.scale),
                              scores.data());
    if (p.cap > 0) kernel::soft_cap(p.cap, scores.view());
    for (Index head = 0; head < scores.rows(); ++head)
      kernel::softmax_row(scores.view().row(head), keys, nullptr);
    vectorized<row_context<T>>(static_cast<const T*>(scores.data()),
                               p.value.data + begin * value_size, of_values, out);
  };
  kernel::parallel_ranges(groups, kernel::row_grain(2 * keys * per_group * size), run);
}

template bool fits_row_attention(const AttentionProblem<float>&);
template bool fits_row_attention(const AttentionProblem<double>&);
template void row_attention(const AttentionProblem<float>&, MatrixView<float>);
template void row_attention(const AttentionProblem<double>&, MatrixView<double>);

}  // namespace masque::nn
