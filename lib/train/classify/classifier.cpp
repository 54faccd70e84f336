#include "train/classify/classifier.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/dropout.hpp"
#include "kernel/number/scalar.hpp"

namespace masque::train {

using model::Role;

namespace {

/// Wanted rows of a sequence: first and number.
std::pair<Index, Index> wanted_of(const ExampleChunk& chunk, Index s) {
  const auto at = static_cast<std::size_t>(s);
  return {chunk.wanted_begins[at], chunk.wanted_begins[at + 1] - chunk.wanted_begins[at]};
}

/// softmax of a row, in place. Returns −log of the target's; `right`: its logit is the first
/// largest.
template <class T>
T softmax_loss(std::span<T> row, std::size_t target, bool& right) {
  using kernel::reference::real_part;
  using std::exp;
  using std::log;
  std::size_t best = 0;
  for (std::size_t k = 1; k < row.size(); ++k) {
    if (real_part(row[k]) > real_part(row[best])) best = k;
  }
  right = best == target;
  const T largest = row[best];
  const T logit = row[target];
  T sum{};
  for (T& x : row) {
    x = exp(x - largest);
    sum += x;
  }
  for (T& x : row) x /= sum;
  return log(sum) + (largest - logit);  // large logits keep their difference
}

}  // namespace

NameTable<ClassifierPooling> pooling_names() {
  static constexpr std::array<std::pair<std::string_view, ClassifierPooling>, 2> kNames{
      {{"cls", ClassifierPooling::kFirst}, {"mean", ClassifierPooling::kMean}}};
  return kNames;
}

NameTable<ProblemType> problem_types() {
  static constexpr std::array<std::pair<std::string_view, ProblemType>, 2> kNames{
      {{"single_label_classification", ProblemType::kSingleLabel},
       {"regression", ProblemType::kRegression}}};
  return kNames;
}

std::string_view problem_type_name(ProblemType problem) {
  return name_in(problem_types(), problem);
}

std::string_view pooling_name(ClassifierPooling pooling) {
  return name_in(pooling_names(), pooling);
}

template <class T>
ParameterMap add_classifier(Index hidden_size, Index labels, ClassifierPooling pooling,
                            const std::string& prefix, Parameters<T>& parameters) {
  ParameterMap map;
  const auto add = [&](Role role, const std::string& name, Index outputs) {
    map.set(
        role, false, 0, 0,
        parameters.add(
            {.name = name + ".weight", .rows = outputs, .columns = hidden_size, .decays = true}));
    map.set(role, true, 0, 0,
            parameters.add({.name = name + ".bias", .rows = 1, .columns = outputs}));
  };
  if (pooling == ClassifierPooling::kFirst)
    add(Role::kHeadTransform, prefix + "pooler.dense", hidden_size);
  add(Role::kDecoder, "classifier", labels);
  parameters.fit();
  return map;
}

template <class T>
void pool_forward(const ExampleChunk& chunk, ClassifierPooling pooling, MatrixView<const T> last,
                  MatrixView<T> pooled) {
  for (Index s = 0; s < chunk.sequences(); ++s) {
    const auto [first, count] = wanted_of(chunk, s);
    MASQUE_CHECK(count > 0 && (pooling == ClassifierPooling::kMean || count == 1));
    std::copy_n(last.row(first), last.columns, pooled.row(s));
    if (pooling == ClassifierPooling::kFirst) continue;
    for (Index i = 1; i < count; ++i) {
      for (Index c = 0; c < last.columns; ++c) pooled.at(s, c) += last.at(first + i, c);
    }
    for (T& x : pooled.row_span(s)) x /= static_cast<T>(static_cast<double>(count));
  }
}

template <class T>
void pool_backward(const ExampleChunk& chunk, ClassifierPooling pooling,
                   MatrixView<const T> d_pooled, MatrixView<T> d_last) {
  for (Index s = 0; s < chunk.sequences(); ++s) {
    const auto [first, count] = wanted_of(chunk, s);
    const T share = pooling == ClassifierPooling::kMean ? T(1) / static_cast<T>(count) : T(1);
    for (Index i = 0; i < count; ++i) {
      for (Index c = 0; c < d_last.columns; ++c)
        d_last.at(first + i, c) = share * d_pooled.at(s, c);
    }
  }
}

template <class T>
ClassifierHead<T>::ClassifierHead(const ParameterMap& map, Parameters<T>& parameters,
                                  kernel::Precision precision)
    : pooler_(parameters, map, {Role::kHeadTransform}, 0, precision),
      labels_(parameters, map, {Role::kDecoder}, 0, precision) {}

template <class T>
void ClassifierHead<T>::prepare() {
  pooler_.prepare();
  labels_.prepare();
}

template <class T>
LossSums<T> ClassifierHead<T>::run(const ClassifierTask<T>& task, MatrixView<T> d_pooled) {
  const Index n = task.pooled.rows;
  MASQUE_CHECK(n > 0);
  if (pooler_.empty()) {
    active_ = Matrix<T>::copy(task.pooled);
  } else {
    raw_.resize(n, pooler_.outputs());
    pooler_.forward(task.pooled, raw_.view());
    active_ = Matrix<T>::copy(raw_.view());
    kernel::activation_forward<T>(kernel::Activation::kTanh, active_.view());
  }
  kernel::dropout_forward<T>(task.dropout, task.stream, task.first, active_.view());
  outputs_.resize(n, labels_.outputs());
  labels_.forward(active_.view(), outputs_.view());
  const LossSums<T> sums = losses(task, d_pooled.data != nullptr);
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (d_pooled.data == nullptr) return sums;
    d_active_.resize(n, active_.columns());
    labels_.backward(active_.view(), d_logits_.view(), false, d_active_.view());
    kernel::dropout_backward<T>(task.dropout, task.stream, task.first, d_active_.view());
    if (pooler_.empty()) {
      for (Index i = 0; i < n; ++i)
        std::copy_n(d_active_.view().row(i), d_pooled.columns, d_pooled.row(i));
      return sums;
    }
    d_raw_ = Matrix<T>::zero(n, raw_.columns());
    kernel::activation_backward<T>(kernel::Activation::kTanh, raw_.view(), d_active_.view(),
                                   d_raw_.view());
    pooler_.backward(task.pooled, d_raw_.view(), false, d_pooled);
  } else {
    MASQUE_CHECK(d_pooled.data == nullptr);
  }
  return sums;
}

template <class T>
LossSums<T> ClassifierHead<T>::losses(const ClassifierTask<T>& task, bool d) {
  const bool regression = !task.offsets.empty();
  MASQUE_CHECK(!regression || outputs_.columns() == 1);
  LossSums<T> sums;
  if (d) d_logits_.resize(outputs_.rows(), outputs_.columns());
  for (Index i = 0; i < outputs_.rows(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::span<T> row = outputs_.view().row_span(i);
    bool right = false;
    const T error = regression ? row[0] + static_cast<T>(task.offsets[at]) : T{};
    const T loss = regression
                       ? error * error
                       : softmax_loss<T>(row, static_cast<std::size_t>(task.labels[at]), right);
    sums.loss += static_cast<decltype(sums.loss)>(loss) * task.row_weights[at];
    if (right) ++sums.correct;
    if (!d) continue;
    const std::span<T> d_row = d_logits_.view().row_span(i);
    std::ranges::copy(row, d_row.begin());
    if (regression) {
      d_row[0] = error + error;
    } else {
      d_row[static_cast<std::size_t>(task.labels[at])] -= T(1);
    }
    for (T& x : d_row) x *= static_cast<T>(task.row_weights[at]);
  }
  return sums;
}

template <class T>
Classifier<T>::Classifier(const model::Design& design, const ParameterMap& model_map,
                          const ParameterMap& map, ClassifierPooling pooling,
                          Parameters<T>& parameters, kernel::Precision precision,
                          ProblemType problem)
    : encoder_(design, model_map, parameters, precision),
      head_(map, parameters, precision),
      pooling_(pooling),
      problem_(problem) {}

template <class T>
void Classifier<T>::prepare() {
  encoder_.prepare();
  head_.prepare();
}

template <class T>
LossReport Classifier<T>::run(std::span<const Example> examples, double scale,
                              const DropoutOptions* dropout, std::vector<double>* outputs,
                              const std::function<void(Index)>& passed) {
  LossReport report;
  DropoutOptions own;
  if (dropout != nullptr) own = *dropout;
  const Index width = design().hidden_size;
  while (!examples.empty()) {
    const ExampleChunk chunk = take_chunk(examples, chunk_rows);
    const auto wanted = static_cast<Index>(chunk.wanted.size());
    last_.resize(wanted, width);
    encoder_.forward(chunk, own, tape_, last_.view());
    const Index texts = chunk.sequences();
    pooled_.resize(texts, width);
    pool_forward<T>(chunk, pooling_, last_.view(), pooled_.view());
    std::vector<TokenId> labels;
    std::vector<double> offsets;
    for (Index s = 0; s < texts; ++s) {
      const auto first = static_cast<std::size_t>(wanted_of(chunk, s).first);
      labels.push_back(chunk.targets[first]);
      if (problem_ == ProblemType::kRegression) offsets.push_back(chunk.offsets[first]);
    }
    const std::vector<double> weights(labels.size(), scale);
    ClassifierTask<T> task{pooled_.view(), labels, weights, offsets};
    task.dropout = own.hidden_dropout;
    task.stream = RandomStream(own.seed, "dropout classifier", own.step);
    task.first = static_cast<std::uint64_t>(report.rows * width);
    if (dropout != nullptr) d_pooled_.resize(texts, width);
    const LossSums<T> sums =
        head_.run(task, dropout != nullptr ? d_pooled_.view() : MatrixView<T>());
    report.loss += static_cast<double>(sums.loss) / scale;
    report.correct += sums.correct;
    report.rows += texts;
    report.weight += static_cast<double>(texts);
    if (outputs != nullptr) {
      for (Index s = 0; s < texts; ++s) {
        const std::span<const T> row = head_.outputs().row_span(s);
        outputs->insert(outputs->end(), row.begin(), row.end());
      }
    }
    if (dropout != nullptr) {
      d_last_.resize(wanted, width);
      pool_backward<T>(chunk, pooling_, d_pooled_.view(), d_last_.view());
      if (examples.empty()) tape_.passed = passed;
      encoder_.backward(chunk, own, tape_, d_last_.view());
      tape_.passed = {};
    }
    own.first_row += chunk.rows();
  }
  return report;
}

template <class T>
LossReport Classifier<T>::train(std::span<const Example> examples, double scale,
                                const DropoutOptions& dropout, std::function<void(Index)> passed) {
  MASQUE_CHECK(scale > 0);
  return run(examples, scale, &dropout, nullptr, passed);
}

template <class T>
LossReport Classifier<T>::evaluate(std::span<const Example> examples,
                                   std::vector<double>* outputs) {
  return run(examples, 1, nullptr, outputs, {});
}

#define MASQUE_INSTANTIATE(T)                                                               \
  template ParameterMap add_classifier(Index, Index, ClassifierPooling, const std::string&, \
                                       Parameters<T>&);                                     \
  template void pool_forward(const ExampleChunk&, ClassifierPooling, MatrixView<const T>,   \
                             MatrixView<T>);                                                \
  template class ClassifierHead<T>;
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE
template void pool_backward(const ExampleChunk&, ClassifierPooling, MatrixView<const float>,
                            MatrixView<float>);
template void pool_backward(const ExampleChunk&, ClassifierPooling, MatrixView<const double>,
                            MatrixView<double>);
template class Classifier<float>;
template class Classifier<double>;

}  // namespace masque::train
