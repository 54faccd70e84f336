#include "train/network/network.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::train {

void LossReport::add(const LossReport& other) {
  loss += other.loss;
  weight += other.weight;
  rows += other.rows;
  correct += other.correct;
  predicted_replaced += other.predicted_replaced;
  true_positives += other.true_positives;
  for (std::size_t k = 0; k < kDiversities; ++k) diversity[k] += other.diversity[k];
  sequences += other.sequences;
  divergence += other.divergence;
  coded += other.coded;
}

double total_weight(std::span<const Example> examples) {
  double total = 0;
  for (const Example& example : examples) {
    if (example.divisor) {
      total += *example.divisor;
    } else if (example.weights.empty()) {
      total += static_cast<double>(example.rows.size());
    } else {
      for (const double weight : example.weights) total += weight;
    }
  }
  return total;
}

template <class T>
Network<T>::Network(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
                    kernel::Precision precision, const CopyGateParameters& gate,
                    const EncoderPart* source)
    : parameters_(&parameters),
      map_(map),
      encoder_(design, map, parameters, precision),
      head_(design, map, parameters, precision),
      gate_(gate, parameters) {
  if (design.head.shifted && !gate_.empty())
    throw UsageError(
        "a copy gate reads the state of the token that it copies, but the model predicts each "
        "token from the position before it");
  MASQUE_CHECK((source != nullptr) == design.source.has_value());
  if (source == nullptr) return;
  MASQUE_CHECK(source->design.hidden_size == design.hidden_size);
  source_ = std::make_unique<Source>(*source, parameters, precision);
}

template <class T>
void Network<T>::set_recompute(Recompute recompute) {
  encoder_.set_recompute(recompute);
  if (source_) source_->encoder.set_recompute(recompute);
}

template <class T>
std::vector<Index> Network<T>::last_layers() const {
  std::vector<Index> last = encoder_.last_layers();
  if (source_) {
    source_->part.map.for_each([&](model::Role, bool, Index, Index, Index parameter) {
      last[static_cast<std::size_t>(parameter)] = -1;
    });
  }
  return last;
}

template <class T>
void Network<T>::prepare() {
  learns_ = gate_.learns() || any_trained(map_, *parameters_);
  if (source_) {
    source_->encoder.prepare();
    encoder_.want_source(source_->encoder.learns());
    learns_ = learns_ || source_->encoder.learns();
  }
  encoder_.prepare();
  head_.prepare();
}

template <class T>
void Network<T>::exclude(TokenId token) {
  head_.exclude(token);
}

template <class T>
void Network<T>::reward_diversity(const Diversities& weights) {
  if (source_)
    throw UsageError("the diversity of an encoder–decoder's attention cannot be rewarded");
  encoder_.measure_diversity();
  rewards_ = weights;
}

template <class T>
LossSums<T> Network<T>::judge(const ExampleChunk& chunk, std::span<const double> row_weights,
                              MatrixView<T> d_last, std::size_t first,
                              const RunOutputs<T>& outputs) {
  HeadTask<T> task{last_.view(), chunk.targets, row_weights};
  task.offsets = chunk.offsets;
  if (outputs.sampling != nullptr) {
    task.uniforms = std::span(outputs.sampling->uniforms).subspan(first, chunk.wanted.size());
    task.draws = std::span(outputs.sampling->tokens).subspan(first, chunk.wanted.size());
    if (outputs.sampling->keeps_losses)
      task.draw_losses = std::span(outputs.sampling->losses).subspan(first, chunk.wanted.size());
  }
  if (gate_.empty()) {
    std::span<double> losses;
    if (outputs.losses != nullptr) {
      outputs.losses->resize(first + chunk.wanted.size());
      losses = std::span(*outputs.losses).subspan(first);
    }
    return head_.run(task, d_last, losses);
  }
  MASQUE_CHECK(outputs.losses == nullptr && outputs.sampling == nullptr);
  std::vector<TokenId> inputs;
  inputs.reserve(chunk.wanted.size());
  for (const Index row : chunk.wanted) inputs.push_back(chunk.ids[static_cast<std::size_t>(row)]);
  return gate_.run(head_, task, inputs, d_last);
}

namespace {

/// Moves the wanted rows of `chunk` to those that a shifted head reads (HeadDesign::shifted).
void read_before(ExampleChunk& chunk) {
  for (Index s = 0; s < chunk.sequences(); ++s) {
    const auto at = static_cast<std::size_t>(s);
    for (Index k = chunk.wanted_begins[at]; k < chunk.wanted_begins[at + 1]; ++k) {
      Index& row = chunk.wanted[static_cast<std::size_t>(k)];
      row = std::max(chunk.begins[at], row - 1);
    }
  }
}

}  // namespace

double DivergenceLoss::weight_at(std::uint64_t step) const {
  if (cycle <= 0) return weight;
  const std::uint64_t done = step == 0 ? 0 : (step - 1) % static_cast<std::uint64_t>(cycle);
  return weight * std::min(1.0, 2 * static_cast<double>(done + 1) / static_cast<double>(cycle));
}

template <class T>
void Network<T>::read_sources(const ExampleChunk& chunk, const DropoutOptions& dropout) {
  Source& own = *source_;
  own.chunk = chunk.sources();
  own.dropout = dropout;
  own.dropout.seed = ~dropout.seed;  // it has nothing to do with that of the decoder
  own.dropout.first_row = dropout.first_source;
  own.states.resize(own.chunk.rows(), design().hidden_size);
  own.encoder.forward(own.chunk, own.dropout, own.tape, own.states.view());
  tape_.source = {own.states.view(), chunk.source_begins, {}};
}

template <class T>
void Network<T>::backward(const ExampleChunk& chunk, const DropoutOptions& dropout) {
  const bool goes_on = source_ && source_->encoder.learns();
  if (goes_on) {
    source_->d_states = Matrix<T>::zero(source_->states.rows(), source_->states.columns());
    tape_.source.d_states = source_->d_states.view();
  }
  encoder_.backward(chunk, dropout, tape_, d_last_.view());
  if (!goes_on) return;
  source_->encoder.backward(source_->chunk, source_->dropout, source_->tape,
                            source_->d_states.view());
}

template <class T>
LossReport Network<T>::run(std::span<const Example> examples, double scale,
                           const DropoutOptions* dropout, bool learns,
                           const RunOutputs<T>& outputs) {
  LossReport report;
  learns = learns && learns_;
  if (outputs.sampling != nullptr) {
    outputs.sampling->tokens.resize(outputs.sampling->uniforms.size());
    if (outputs.sampling->keeps_losses)
      outputs.sampling->losses.resize(outputs.sampling->uniforms.size());
  }
  if (outputs.losses != nullptr) outputs.losses->clear();
  if (outputs.layers != nullptr)
    outputs.layers->assign(static_cast<std::size_t>(design().num_hidden_layers), {});
  Index rows = 0;
  for (const Example& example : examples) {
    rows += std::ssize(example.rows);
    if (example.rows.empty()) continue;
    report.sequences += rewards_ ? 1 : 0;
    report.coded += divergence_ ? 1 : 0;
  }
  if (outputs.last != nullptr) outputs.last->resize(rows, last_width(design()));
  const auto matrices = static_cast<double>(encoder_.attention_matrices());
  for (std::size_t k = 0; rewards_ && k < kDiversities; ++k) {
    tape_.diversity_slopes[k] =
        -(*rewards_)[k] / (matrices * static_cast<double>(std::max(
                                          {Index{1}, rewarded_sequences, report.sequences})));
  }
  DropoutOptions own;
  if (dropout != nullptr) {
    own = *dropout;
    own.draws_latents = true;
  }
  std::vector<double> row_weights;
  const auto pass = [&own](const ExampleChunk& chunk) {
    own.first_row += chunk.rows();
    own.first_source += std::ssize(chunk.source_ids);
  };
  while (!examples.empty()) {
    ExampleChunk chunk = take_chunk(examples, chunk_rows);
    if (design().head.shifted) read_before(chunk);
    const auto wanted = static_cast<Index>(chunk.wanted.size());
    for (const double divisor : chunk.divisors) report.weight += divisor;
    if (wanted == 0) {
      pass(chunk);
      continue;
    }
    last_.resize(wanted, last_width(design()));
    tape_.magnitudes = outputs.layers;
    if (source_) read_sources(chunk, own);
    encoder_.forward(chunk, own, tape_, last_.view());
    for (std::size_t k = 0; rewards_ && k < kDiversities; ++k)
      report.diversity[k] += tape_.diversity[k] / matrices;
    row_weights = chunk.weights;
    for (double& weight : row_weights) weight *= scale;
    if (learns) d_last_.resize(wanted, last_width(design()));
    const LossSums<T> sums = judge(chunk, row_weights, learns ? d_last_.view() : MatrixView<T>(),
                                   static_cast<std::size_t>(report.rows), outputs);
    if (outputs.last != nullptr) {
      std::copy_n(last_.data(), wanted * last_.columns(), outputs.last->view().row(report.rows));
    }
    report.loss += static_cast<double>(sums.loss) / scale;
    report.correct += sums.correct;
    report.predicted_replaced += sums.predicted_replaced;
    report.true_positives += sums.true_positives;
    report.rows += wanted;
    if (!learns) {
      pass(chunk);
      continue;
    }
    if (examples.empty()) tape_.passed = outputs.passed;
    backward(chunk, own);
    tape_.passed = {};
    pass(chunk);
  }
  if (divergence_) {
    const auto sequences = static_cast<double>(report.coded);
    const double weight = learns ? divergence_->weight_at(own.step) * scale * sequences : 0;
    report.divergence = sequences * encoder_.add_divergence(weight, divergence_->free_nats);
  }
  return report;
}

template <class T>
LossReport Network<T>::train(std::span<const Example> examples, double scale,
                             const DropoutOptions& dropout, const RunOutputs<T>& outputs) {
  MASQUE_CHECK(scale > 0);
  return run(examples, scale, &dropout, true, outputs);
}

template <class T>
LossReport Network<T>::evaluate(std::span<const Example> examples, const RunOutputs<T>& outputs) {
  return run(examples, 1, nullptr, false, outputs);
}

template <class T>
LossReport Network<T>::evaluate_with_dropout(std::span<const Example> examples,
                                             const DropoutOptions& dropout,
                                             const RunOutputs<T>& outputs) {
  return run(examples, 1, &dropout, false, outputs);
}

template class Network<float>;
template class Network<double>;

}  // namespace masque::train
