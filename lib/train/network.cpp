#include "train/network.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::train {

void LossReport::add(const LossReport& other) {
  loss += other.loss;
  weight += other.weight;
  rows += other.rows;
  correct += other.correct;
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
                    kernel::Precision precision)
    : encoder_(design, slots, parameters, precision), head_(design, slots, parameters, precision) {}

template <class T>
void Network<T>::prepare() {
  encoder_.prepare();
  head_.prepare();
}

template <class T>
LossReport Network<T>::run(std::span<const Example> examples, double scale, const Noise* noise) {
  LossReport report;
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
    HeadTask<T> task{last_.view(), chunk.targets, row_weights};
    if (noise != nullptr) d_last_.resize(wanted, design().hidden_size);
    const LossSums<T> sums =
        head_.run(task, noise != nullptr ? d_last_.view() : MatrixView<T>(), {});
    report.loss += static_cast<double>(sums.loss) / scale;
    report.correct += sums.correct;
    report.rows += wanted;
    for (const double weight : chunk.weights) report.weight += weight;
    if (noise != nullptr) encoder_.backward(chunk, own, tape_, d_last_.view());
    own.first_row += chunk.rows();
  }
  return report;
}

template <class T>
LossReport Network<T>::train(std::span<const Example> examples, double scale, const Noise& noise) {
  MASQUE_CHECK(scale > 0);
  return run(examples, scale, &noise);
}

template <class T>
LossReport Network<T>::evaluate(std::span<const Example> examples) {
  return run(examples, 1, nullptr);
}

template class Network<float>;
template class Network<double>;

}  // namespace masque::train
