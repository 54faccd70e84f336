// How parameters start.
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/random.hpp"
#include "model/variants.hpp"
#include "train/network/network.hpp"

namespace masque::train {

namespace {

using model::Role;

struct Normal {
  double mean = 0;
  double deviation = 0;
};

/// In the residual branches, where DeepNorm's gain acts.
bool scales_residual(Role role) {
  return role == Role::kValue || role == Role::kOutput || role == Role::kUp ||
         role == Role::kGate || role == Role::kDown || role == Role::kGatedInput;
}

bool is_table(Role role) {
  return role == Role::kWordTable || role == Role::kPositionTable || role == Role::kSegmentTable ||
         role == Role::kQueryStart || role == Role::kDecoder;
}

Normal normal_of(Role role, bool bias, const Parameter& p, const StartOptions& options) {
  if (bias || role == Role::kGatedBeta) return {};
  if (model::is_norm(role) || role == Role::kGatedGamma) return {1, 0};
  if (options.residual_gain > 0 && !is_table(role)) {
    const double gain = scales_residual(role) ? options.residual_gain : 1;
    return {0, gain * std::sqrt(2.0 / static_cast<double>(p.rows + p.columns))};
  }
  return {0, options.initializer_range};
}

}  // namespace

template <class T>
void initialize_parameters(const model::Design& design, const ParameterMap& slots,
                           const StartOptions& options, Parameters<T>& parameters) {
  const auto places = model::position_parameters(design);
  const auto mixing = model::mixer_parameters(design);
  slots.for_each([&](Role role, bool bias, Index /*layer*/, Index part, Index at) {
    const Parameter& p = parameters[at];
    const MatrixView<T> value = parameters.value(at);
    const auto size = static_cast<std::size_t>(p.size());
    Normal start = normal_of(role, bias, p, options);
    if (role == Role::kPositionPart || role == Role::kSharedPositionPart) {
      const nn::PositionParameter& own = places[static_cast<std::size_t>(part)];
      if (!own.values.empty()) {
        std::transform(own.values.begin(), own.values.end(), value.data,
                       [](double x) { return static_cast<T>(x); });
        return;
      }
      start = {own.mean, own.deviation};
    }
    if (role == Role::kMixerPart) {
      const nn::MixerParameter& own = mixing[static_cast<std::size_t>(part)];
      start = {own.mean, own.deviation};
    }
    if (role == Role::kTalkingBefore || role == Role::kTalkingAfter) {
      for (Index i = 0; i < p.rows; ++i) {
        for (Index j = 0; j < p.columns; ++j) value.at(i, j) = static_cast<T>(i == j ? 1.0 : 0.0);
      }
      return;
    }
    std::vector<double> numbers(size, 0.0);
    if (start.deviation > 0)
      RandomStream(options.seed, "start " + (p.start.empty() ? p.name : p.start))
          .normal(0, size, numbers.data());
    for (std::size_t i = 0; i < size; ++i)
      value.data[i] = static_cast<T>(start.mean + start.deviation * numbers[i]);
  });
}

template void initialize_parameters(const model::Design&, const ParameterMap&, const StartOptions&,
                                    Parameters<float>&);
template void initialize_parameters(const model::Design&, const ParameterMap&, const StartOptions&,
                                    Parameters<double>&);

}  // namespace masque::train
