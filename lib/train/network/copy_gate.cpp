#include "train/network/copy_gate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernel/number/elementary.hpp"

namespace masque::train {

namespace {

/// A row's loss and its derivatives.
struct Mixed {
  double loss = 0;
  double d_head = 0;  ///< by the loss of the vocabulary alone
  double d_gate = 0;  ///< by z
};

Mixed mix(double z, double head_loss, bool same) {
  const double open = 1 / (1 + std::exp(-z));
  if (!same) return {kernel::softplus(z) + head_loss, 1, open};
  const double copied = -kernel::softplus(-z);
  const double predicted = -kernel::softplus(z) - head_loss;
  const double total =
      std::max(copied, predicted) + std::log1p(std::exp(-std::abs(copied - predicted)));
  const double by_copy = std::exp(copied - total);
  const double by_head = std::exp(predicted - total);
  return {-total, by_head, by_head * open - by_copy * (1 - open)};
}

}  // namespace

template <class T>
CopyGateParameters add_copy_gate(Index hidden_size, const std::string& prefix,
                                 Parameters<T>& parameters) {
  CopyGateParameters map;
  map.weight = parameters.add(
      {.name = prefix + "copy_gate.weight", .rows = 1, .columns = hidden_size, .decays = true});
  map.bias = parameters.add({.name = prefix + "copy_gate.bias", .rows = 1, .columns = 1});
  return map;
}

template <class T>
bool CopyGate<T>::learns() const {
  return !empty() && ((*parameters_)[map_.weight].trained || (*parameters_)[map_.bias].trained);
}

template <class T>
LossSums<T> CopyGate<T>::run(Head<T>& head, const HeadTask<T>& task,
                             std::span<const TokenId> inputs, MatrixView<T> d_last) const {
  const Index n = task.last.rows;
  const auto count = static_cast<std::size_t>(n);
  std::vector<double> losses(count);
  head.run(task, {}, losses);
  const MatrixView<T> weight = parameters_->value(map_.weight);
  const double bias = static_cast<double>(parameters_->value(map_.bias).at(0, 0));
  LossSums<T> sums;
  std::vector<double> head_weights(count);
  std::vector<double> d_gate(count);
  for (std::size_t i = 0; i < count; ++i) {
    double z = bias;
    for (Index c = 0; c < weight.columns; ++c) {
      z += static_cast<double>(task.last.at(static_cast<Index>(i), c)) *
           static_cast<double>(weight.at(0, c));
    }
    const Mixed row = mix(z, losses[i], inputs[i] == task.targets[i]);
    sums.loss += task.row_weights[i] * row.loss;
    if (row.loss < std::numbers::ln2) ++sums.correct;
    head_weights[i] = task.row_weights[i] * row.d_head;
    d_gate[i] = task.row_weights[i] * row.d_gate;
  }
  if (d_last.data == nullptr) return sums;
  head.run({task.last, task.targets, head_weights}, d_last);
  const MatrixView<T> d_weight = parameters_->gradient(map_.weight);
  const MatrixView<T> d_bias = parameters_->gradient(map_.bias);
  for (Index i = 0; i < n; ++i) {
    const auto d = static_cast<T>(d_gate[static_cast<std::size_t>(i)]);
    for (Index c = 0; c < weight.columns; ++c) d_last.at(i, c) += d * weight.at(0, c);
    for (Index c = 0; c < d_weight.columns; ++c) d_weight.at(0, c) += d * task.last.at(i, c);
    if (d_bias.data != nullptr) d_bias.at(0, 0) += d;
  }
  return sums;
}

template CopyGateParameters add_copy_gate(Index, const std::string&, Parameters<float>&);
template CopyGateParameters add_copy_gate(Index, const std::string&, Parameters<double>&);
template class CopyGate<float>;
template class CopyGate<double>;

}  // namespace masque::train
