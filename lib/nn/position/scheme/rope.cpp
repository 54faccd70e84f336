// rope, rope_pi, rope_ntk, …: pairs of features of queries and keys rotated by position · θ_t, θ_t
// = base^(−2t/d), or as a method of nn/position/rotary_scaling.cpp changes it.
#include "nn/position/rotary_scaling.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

std::unique_ptr<PositionScheme> make_rope(NamedArguments& arguments) {
  const RotaryScaling& scaling = rotary_scaling(arguments.name());
  const RotarySettings settings = rotary_settings(arguments);
  RotaryArguments values;
  for (const RotaryParameter& parameter : scaling.parameters) parameter.read(arguments, values);
  return std::make_unique<RotaryScheme>(settings, scaling, values);
}

/// Registers every method.
struct RotaryRegistration {
  RotaryRegistration() {
    for (const RotaryScaling& scaling : rotary_scalings())
      PositionRegistration(scaling.name, make_rope);
  }
};
const RotaryRegistration kRegistration;

}  // namespace

}  // namespace masque::nn
