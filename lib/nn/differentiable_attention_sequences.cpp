// Many sequences, cut into items of work: a key head of a sequence each.
#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "nn/differentiable_attention_block.hpp"

namespace masque::nn {

namespace {

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
    differentiable::forward_key_head(sequences[item.sequence], item.group);
  });
}

template <class T>
void differentiable_attention_backward(std::span<const DifferentiableBackward<T>> sequences) {
  for (const DifferentiableBackward<T>& s : sequences) check_gradients(s);
  const std::vector<Item> items = items_of(sequences);
  const auto run = [&](Index i) {
    const Item& item = items[static_cast<std::size_t>(i)];
    differentiable::backward_key_head(sequences[item.sequence], item.group);
  };
  const bool in_order = std::any_of(sequences.begin(), sequences.end(),
                                    [](const auto& s) { return has_terms(s.gradients); });
  if (!in_order) return kernel::parallel_items(std::ssize(items), run);
  for (Index i = 0; i < std::ssize(items); ++i) run(i);
}

template void differentiable_attention_forward(std::span<const DifferentiableForward<float>>);
template void differentiable_attention_forward(std::span<const DifferentiableForward<double>>);
template void differentiable_attention_backward(std::span<const DifferentiableBackward<float>>);
template void differentiable_attention_backward(std::span<const DifferentiableBackward<double>>);

}  // namespace masque::nn
