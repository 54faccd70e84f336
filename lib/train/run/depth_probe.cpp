#include "train/run/depth_probe.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "kernel/optimizer.hpp"
#include "train/network/network_part.hpp"

namespace masque::train {

namespace {

/// ‖a − b‖ / √numbers
double root_mean_square_difference(const Matrix<float>& a, const Matrix<float>& b) {
  MASQUE_CHECK(a.rows() == b.rows() && a.columns() == b.columns());
  double sum = 0;
  for (Index i = 0; i < a.rows(); ++i) {
    const auto one = a.view().row_span(i);
    const auto other = b.view().row_span(i);
    for (std::size_t j = 0; j < one.size(); ++j) {
      const double difference = static_cast<double>(one[j]) - static_cast<double>(other[j]);
      sum += difference * difference;
    }
  }
  const auto numbers = static_cast<double>(a.rows() * a.columns());
  return numbers > 0 ? std::sqrt(sum / numbers) : 0;
}

/// The function of the values as they are, on some examples.
class LastStates {
 public:
  LastStates(TrainingRun& run, Index sequences)
      : run_(run), examples_(run.first_examples(sequences)) {
    if (run.design().streams == model::Streams::kTowers)
      throw UsageError("the model has two towers, expected one stack of layers");
  }

  std::span<const Example> examples() const { return examples_; }

  LossReport evaluate(Matrix<float>& last, std::vector<LayerMagnitudes>* layers = nullptr) {
    throw_if_interrupted();
    run_.network().prepare();
    RunOutputs<float> outputs;
    outputs.last = &last;
    outputs.layers = layers;
    LossReport report = run_.network().evaluate(examples_, outputs);
    if (report.rows == 0)
      throw InputError(run_.corpus().source(), "no position has a loss; use longer texts");
    if (!std::isfinite(report.mean())) {
      throw InputError(run_.corpus().source(),
                       "the loss is not finite; try a smaller learning rate");
    }
    return report;
  }

 private:
  TrainingRun& run_;
  std::vector<Example> examples_;
};

/// The values of parameters, which get them back at the end of its life.
class KeptValues {
 public:
  explicit KeptValues(Parameters<float>& parameters)
      : parameters_(parameters), values_(parameters.values().begin(), parameters.values().end()) {}
  KeptValues(const KeptValues&) = delete;
  KeptValues& operator=(const KeptValues&) = delete;
  ~KeptValues() { restore(); }

  void restore() const { std::ranges::copy(values_, parameters_.values().begin()); }
  const std::vector<float>& values() const { return values_; }

 private:
  Parameters<float>& parameters_;
  std::vector<float> values_;
};

class Probe {
 public:
  Probe(TrainingRun& run, FirstUpdate update, double learning_rate, Index sequences)
      : run_(run),
        parameters_(run.parameters()),
        update_(update),
        learning_rate_(learning_rate),
        states_(run, sequences) {}

  DepthReport run() {
    DepthReport report;
    Matrix<float> before, after;
    std::vector<LayerMagnitudes> magnitudes;
    const LossReport start = states_.evaluate(before, &magnitudes);
    report.rows = start.rows;
    report.loss = start.mean();
    for (const LayerMagnitudes& own : magnitudes) {
      DepthLayer& layer = report.layers.emplace_back();
      layer.state = own.root_mean_square(own.state);
      layer.attention_branch = own.root_mean_square(own.attention_branch);
      layer.feed_forward_branch = own.root_mean_square(own.feed_forward_branch);
      layer.attention_norm_input = own.root_mean_square(own.attention_norm_input);
      layer.feed_forward_norm_input = own.root_mean_square(own.feed_forward_norm_input);
    }
    parameters_.clear_gradients();
    run_.network().train(states_.examples(), 1 / total_weight(states_.examples()), {});
    report.gradient = std::sqrt(kernel::sum_of_squares<float>(parameters_.gradients()));
    const KeptValues values(parameters_);
    const std::vector<float> updated = updated_values(values.values());
    std::ranges::copy(updated, parameters_.values().begin());
    report.loss_after = states_.evaluate(after).mean();
    report.change = root_mean_square_difference(before, after);
    const std::vector<std::vector<Index>> own = parameters_of_layers();
    for (std::size_t l = 0; l < report.layers.size(); ++l) {
      values.restore();
      DepthLayer& layer = report.layers[l];
      for (const Index i : own[l]) {
        const Parameter& p = parameters_[i];
        layer.gradient += kernel::sum_of_squares<float>(gradient_of(p));
        const auto begin = static_cast<std::size_t>(p.offset);
        for (std::size_t j = begin; j < begin + static_cast<std::size_t>(p.size()); ++j) {
          const double difference =
              static_cast<double>(updated[j]) - static_cast<double>(values.values()[j]);
          layer.update += difference * difference;
          parameters_.values()[j] = updated[j];
        }
      }
      layer.gradient = std::sqrt(layer.gradient);
      layer.update = std::sqrt(layer.update);
      if (own[l].empty()) continue;
      states_.evaluate(after);
      layer.change = root_mean_square_difference(before, after);
    }
    return report;
  }

 private:
  std::span<const float> gradient_of(const Parameter& p) {
    return elements_of(parameters_.gradients(), p.gradient_offset, p);
  }

  /// All values after the update.
  std::vector<float> updated_values(const std::vector<float>& values) {
    std::vector<float> after = values;
    std::vector<float> first, second;
    for (Index i = 0; i < parameters_.count(); ++i) {
      const Parameter& p = parameters_[i];
      if (!p.trained) continue;
      const auto size = static_cast<std::size_t>(p.size());
      const std::span<float> value = elements_of(std::span(after), p.offset, p);
      const std::span<const float> gradient = gradient_of(p);
      const double rate = learning_rate_ * p.rate;
      if (update_ == FirstUpdate::kSgd) {
        for (std::size_t j = 0; j < size; ++j)
          value[j] -= static_cast<float>(rate * static_cast<double>(gradient[j]));
        continue;
      }
      first.assign(size, 0);
      second.assign(size, 0);
      kernel::OptimizerSettings settings;
      settings.learning_rate = rate;
      const kernel::OptimizedTensor<float> tensor{value, gradient, first, second};
      if (update_ == FirstUpdate::kLamb) {
        kernel::lamb_update<float>(settings, tensor);
      } else {
        kernel::adamw_update<float>(settings, tensor);
      }
    }
    return after;
  }

  /// Trained parameters of each layer; of layers that share weights those of the first.
  std::vector<std::vector<Index>> parameters_of_layers() const {
    const std::vector<model::LayerDesign>& layers = run_.design().layers;
    std::vector<std::vector<Index>> own(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const auto same = [&](const model::LayerDesign& one) {
        return one.weights == layers[l].weights;
      };
      if (std::ranges::find_if(layers, same) - layers.begin() != static_cast<std::ptrdiff_t>(l))
        continue;
      run_.map().for_each([&](model::Role role, bool, Index layer, Index, Index parameter) {
        if (network_part(role) == NetworkPart::kLayers && layer == layers[l].weights &&
            parameters_[parameter].trained)
          own[l].push_back(parameter);
      });
    }
    return own;
  }

  TrainingRun& run_;
  Parameters<float>& parameters_;
  FirstUpdate update_;
  double learning_rate_;
  LastStates states_;
};

}  // namespace

NameTable<FirstUpdate> first_updates() {
  static constexpr std::array<std::pair<std::string_view, FirstUpdate>, 3> kNames{
      {{"sgd", FirstUpdate::kSgd}, {"adam", FirstUpdate::kAdam}, {"lamb", FirstUpdate::kLamb}}};
  return kNames;
}

DepthReport probe_depth(TrainingRun& run, FirstUpdate update, double learning_rate,
                        Index sequences) {
  return Probe(run, update, learning_rate, sequences).run();
}

void follow_change(TrainingRun& run, Index sequences,
                   const std::function<void(const StepChange&)>& report) {
  LastStates states(run, sequences);
  Matrix<float> before, after;
  states.evaluate(before);
  while (run.trainer().done() < run.trainer().steps()) {
    const StepReport step = run.trainer().step();
    StepChange change;
    change.step = step.step;
    change.loss = step.loss.mean();
    change.gradient = step.gradient_norm;
    states.evaluate(after);
    change.change = root_mean_square_difference(before, after);
    report(change);
  }
}

}  // namespace masque::train
