#include "train/network.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::train {

void LossReport::add(const LossReport& other) {
  loss += other.loss;
  weight += other.weight;
  rows += other.rows;
  correct += other.correct;
  called += other.called;
  found += other.found;
}

double total_weight(std::span<const Example> examples) {
  double total = 0;
  for (const Example& example : examples) {
    if (example.weights.empty()) {
      total += static_cast<double>(example.rows.size());
    } else {
      for (const double weight : example.weights) total += weight;
    }
  }
  return total;
}

template <class T>
Network<T>::Network(const model::Design& design, const Slots& slots, Parameters<T>& parameters,
                    kernel::Precision precision, const CopyGateSlots& gate)
    : encoder_(design, slots, parameters, precision),
      head_(design, slots, parameters, precision),
      gate_(gate, parameters) {}

template <class T>
void Network<T>::prepare() {
  encoder_.prepare();
  head_.prepare();
}

template <class T>
LossSums<T> Network<T>::judge(const Chunk& chunk, std::span<const double> row_weights,
                              MatrixView<T> d_last) {
  const HeadTask<T> task{last_.view(), chunk.targets, row_weights};
  if (gate_.empty()) return head_.run(task, d_last);
  std::vector<TokenId> inputs;
  inputs.reserve(chunk.wanted.size());
  for (const Index row : chunk.wanted) inputs.push_back(chunk.ids[static_cast<std::size_t>(row)]);
  return gate_.run(head_, task, inputs, d_last);
}

template <class T>
LossReport Network<T>::run(std::span<const Example> examples, double scale, const Noise* noise,
                           Sampling* sampling) {
  LossReport report;
  if (sampling != nullptr) sampling->tokens.resize(sampling->uniforms.size());
  Noise own;
  if (noise != nullptr) own = *noise;
  std::vector<double> row_weights;
  while (!examples.empty()) {
    Chunk chunk;
    std::size_t count = 0;
    while (count < examples.size() &&
           (count == 0 || chunk.rows() + examples[count].size() <= chunk_rows)) {
      chunk.add(examples[count++]);
    }
    examples = examples.subspan(count);
    const auto wanted = static_cast<Index>(chunk.wanted.size());
    if (wanted == 0) continue;
    last_.resize(wanted, design().hidden_size);
    encoder_.forward(chunk, own, tape_, last_.view());
    row_weights = chunk.weights;
    for (double& weight : row_weights) weight *= scale;
    if (noise != nullptr) d_last_.resize(wanted, design().hidden_size);
    const LossSums<T> sums =
        judge(chunk, row_weights, noise != nullptr ? d_last_.view() : MatrixView<T>());
    if (sampling != nullptr) {
      const auto first = static_cast<std::size_t>(report.rows);
      head_.sample(std::span(sampling->uniforms).subspan(first, chunk.wanted.size()),
                   std::span(sampling->tokens).subspan(first, chunk.wanted.size()));
    }
    report.loss += static_cast<double>(sums.loss) / scale;
    report.correct += sums.correct;
    report.called += sums.called;
    report.found += sums.found;
    report.rows += wanted;
    for (const double weight : chunk.weights) report.weight += weight;
    if (noise != nullptr) encoder_.backward(chunk, own, tape_, d_last_.view());
    own.first_row += chunk.rows();
  }
  return report;
}

template <class T>
LossReport Network<T>::train(std::span<const Example> examples, double scale, const Noise& noise,
                             Sampling* sampling) {
  MASQUE_CHECK(scale > 0);
  return run(examples, scale, &noise, sampling);
}

template <class T>
LossReport Network<T>::evaluate(std::span<const Example> examples, Sampling* sampling) {
  return run(examples, 1, nullptr, sampling);
}

template class Network<float>;
template class Network<double>;

}  // namespace masque::train
