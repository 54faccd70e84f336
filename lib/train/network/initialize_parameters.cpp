// How parameters start.
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/random/random.hpp"
#include "model/detector.hpp"
#include "model/start_value.hpp"
#include "train/network/network.hpp"

namespace masque::train {

namespace {

using model::Role;

/// In the residual branches, where DeepNorm's gain acts.
bool scales_residual(Role role) {
  return role == Role::kValue || role == Role::kOutput || role == Role::kUp ||
         role == Role::kGate || role == Role::kDown || role == Role::kGatedInput;
}

/// Neither tables nor what a position scheme or a mixer starts by itself.
bool is_xavier(Role role, bool bias) {
  switch (role) {
    case Role::kWordTable:
    case Role::kPositionTable:
    case Role::kSegmentTable:
    case Role::kQueryStart:
    case Role::kDecoder:
    case Role::kPositionPart:
    case Role::kSharedPositionPart:
    case Role::kMixerPart:
    case Role::kTalkingBefore:
    case Role::kTalkingAfter:
    case Role::kScoreScale:
    case Role::kLatentKappa:
    case Role::kGatedGamma:
    case Role::kGatedBeta: return false;
    default: return !bias && !model::is_norm(role);
  }
}

/// Glorot and Bengio's deviation, with DeepNorm's gain.
double xavier_deviation(Role role, const Parameter& p, double residual_gain) {
  const double gain = scales_residual(role) ? residual_gain : 1;
  return gain * std::sqrt(2.0 / static_cast<double>(p.rows + p.columns));
}

}  // namespace

template <class T>
void initialize_parameters(const model::Design& design, const ParameterMap& map,
                           const StartOptions& options, Parameters<T>& parameters) {
  const model::StartValues starts(design, options.initializer_range);
  std::vector<double> numbers;
  map.for_each([&](Role role, bool bias, Index /*layer*/, Index part, Index at) {
    const Parameter& p = parameters[at];
    const MatrixView<T> value = parameters.value(at);
    model::StartValue start = starts.of(role, bias, part);
    if (options.residual_gain > 0 && is_xavier(role, bias))
      start.deviation = xavier_deviation(role, p, options.residual_gain);
    numbers.resize(static_cast<std::size_t>(p.size()));
    const RandomStream stream(options.seed, "start " + (p.start.empty() ? p.name : p.start));
    model::fill_start(start, p.columns, stream, 0, numbers);
    std::ranges::transform(numbers, value.data, [](double x) { return static_cast<T>(x); });
  });
  if (map.has_detector())
    initialize_parameters(model::detector_design(design), map.detector(), options, parameters);
}

template void initialize_parameters(const model::Design&, const ParameterMap&, const StartOptions&,
                                    Parameters<float>&);
template void initialize_parameters(const model::Design&, const ParameterMap&, const StartOptions&,
                                    Parameters<double>&);

}  // namespace masque::train
