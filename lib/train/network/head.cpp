#include "train/network/head.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/softmax/vocabulary_loss.hpp"

namespace masque::train {

using model::HeadKind;
using model::Role;

namespace {

template <class T>
std::span<T> row_of(MatrixView<T> v) {
  return {v.data, static_cast<std::size_t>(v.columns)};
}

/// The gradient of a vector of the parameters; empty if there is none.
template <class T>
std::span<T> gradients_of(Parameters<T>& parameters, Index at) {
  return at == ParameterMap::kNone ? std::span<T>() : row_of<T>(parameters.gradient(at));
}

}  // namespace

template <class T>
Head<T>::Head(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
              kernel::Precision precision)
    : design_(design), map_(map), parameters_(&parameters), precision_(precision) {
  MASQUE_CHECK(design.head.kind != HeadKind::kNone);
  if (design.head.transform)
    weights_.transform = Dense<T>(parameters, map, {Role::kHeadTransform}, 0, precision);
  if (design.head.norm)
    weights_.norm = TrainedNorm<T>(parameters, map, Role::kHeadNorm, 0, *design.head.norm);
}

template <class T>
void Head<T>::exclude(TokenId token) {
  MASQUE_CHECK(design_.head.kind != HeadKind::kDiscriminator);
  MASQUE_CHECK(token >= 0 && token < design_.vocab_size);
  excluded_ = token;
}

template <class T>
void Head<T>::prepare() {
  weights_.transform.prepare();
}

template <class T>
LossSums<T> Head<T>::vocabulary(const HeadTask<T>& task, MatrixView<const T> states,
                                MatrixView<T> d_states, std::span<double> losses) {
  const Index own = map_.weight(Role::kDecoder);
  const Index table = own != ParameterMap::kNone ? own : map_.weight(Role::kWordTable);
  const Index bias = map_.bias(Role::kDecoder);
  kernel::VocabularyTask<T> loss;
  loss.x = states;
  loss.weight = parameters_->value(table);
  if (bias != ParameterMap::kNone) loss.bias = row_of<T>(parameters_->value(bias));
  loss.excluded = excluded_.value_or(-1);
  loss.cap = design_.head.logit_cap;
  loss.targets = task.targets;
  loss.row_weights = task.row_weights;
  loss.uniforms = task.uniforms;
  kernel::VocabularyGradients<T> gradients;
  if (d_states.data != nullptr) {
    gradients.x = d_states;
    gradients.weight = parameters_->gradient(table);
    gradients.bias = gradients_of<T>(*parameters_, bias);
  }
  const auto found =
      kernel::vocabulary_loss<T>(loss, precision_, gradients, losses, task.draws, task.draw_losses);
  return {found.sum, found.correct};
}

template <class T>
LogitLoss<T> logit_loss(T z, bool replaced) {
  using std::exp;
  using std::log;
  const T towards = replaced ? -z : z;
  // log(1 + e^t) without overflow.
  const bool large = kernel::reference::real_part(towards) > 0;
  const T softplus = large ? towards + log(T(1) + exp(-towards)) : log(T(1) + exp(towards));
  const T slope = T(1) / (T(1) + exp(-towards));
  return {softplus, replaced ? -slope : slope, kernel::reference::real_part(z) > 0};
}

template LogitLoss<float> logit_loss(float, bool);
template LogitLoss<double> logit_loss(double, bool);
template LogitLoss<std::complex<double>> logit_loss(std::complex<double>, bool);

template <class T>
LossSums<T> Head<T>::discriminate(const HeadTask<T>& task, MatrixView<const T> states,
                                  MatrixView<T> d_states, std::span<double> losses) {
  const MatrixView<T> weight = parameters_->value(map_.weight(Role::kDecoder));
  const Index bias = map_.bias(Role::kDecoder);
  LossSums<T> sums;
  for (Index i = 0; i < states.rows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    T z = bias == ParameterMap::kNone ? T{} : parameters_->value(bias).at(0, 0);
    if (!task.offsets.empty()) z += static_cast<T>(task.offsets[at]);
    for (Index c = 0; c < states.columns; ++c) z += states.at(i, c) * weight.at(0, c);
    const bool replaced = task.targets[at] != 0;
    const LogitLoss<T> found = logit_loss(z, replaced);
    if (!losses.empty()) losses[at] = kernel::reference::real_part(found.loss);
    sums.loss += static_cast<decltype(sums.loss)>(found.loss) * task.row_weights[at];
    if (found.called == replaced) ++sums.correct;
    if (found.called) ++sums.predicted_replaced;
    if (found.called && replaced) ++sums.true_positives;
    if (d_states.data == nullptr) continue;
    const T d = found.slope * static_cast<T>(task.row_weights[at]);
    const std::span<T> d_weight = gradients_of<T>(*parameters_, map_.weight(Role::kDecoder));
    for (Index c = 0; c < states.columns; ++c) d_states.at(i, c) += d * weight.at(0, c);
    for (std::size_t c = 0; c < d_weight.size(); ++c)
      d_weight[c] += d * states.at(i, static_cast<Index>(c));
    for (T& sum : gradients_of<T>(*parameters_, bias)) sum += d;
  }
  return sums;
}

template <class T>
LossSums<T> Head<T>::run(const HeadTask<T>& task, MatrixView<T> d_last, std::span<double> losses) {
  const Index n = task.last.rows;
  if (n == 0) return {};
  const bool one_number = model::has_one_number(design_.head.kind);
  MASQUE_CHECK(task.draws.empty() || !one_number);
  const bool wanted = d_last.data != nullptr;
  const model::HeadDesign& head = design_.head;
  const MatrixView<const T> states =
      model::head_forward<true, Weights, T>(head, weights_, task.last, memory_);
  if (wanted) d_states_ = Matrix<T>::zero(n, states.columns);
  const MatrixView<T> d_states = wanted ? d_states_.view() : MatrixView<T>();
  const LossSums<T> sums = one_number ? discriminate(task, states, d_states, losses)
                                      : vocabulary(task, states, d_states, losses);
  if (!wanted) return sums;
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (head.scale != 1) {
      for (T& x : d_states_.span()) x *= static_cast<T>(head.scale);
    }
    if (!head.transform) {
      for (Index i = 0; i < n; ++i) std::copy_n(d_states.row(i), d_states.columns, d_last.row(i));
      return sums;
    }
    const MatrixView<const T> active = memory_.active.view();
    MatrixView<const T> d_active = d_states;
    if (head.norm) {
      d_active_ = Matrix<T>::zero(n, active.columns);
      weights_.norm.backward(active, d_states, d_active_.view());
      d_active = d_active_.view();
    }
    d_raw_ = Matrix<T>::zero(n, active.columns);
    kernel::activation_backward<T>(head.activation, memory_.raw.view(), d_active, d_raw_.view());
    weights_.transform.backward(task.last, d_raw_.view(), false, d_last);
  }
  return sums;
}

template class Head<float>;
template class Head<double>;
template class Head<std::complex<double>>;

}  // namespace masque::train
