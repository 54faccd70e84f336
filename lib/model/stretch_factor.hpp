// The argument `factor` of treatments.
#pragma once

#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

/// The argument `factor`: 0, or at least 1. Throws UsageError.
double read_factor(NamedArguments& spelled);

/// How many times longer texts are taken to be: as given, or with 0 what the stretch says.
class StretchFactor {
 public:
  /// Asks for `factor`.
  explicit StretchFactor(NamedArguments& spelled) : given_(read_factor(spelled)) {}

  double of(const LengthExtension& stretch) const { return given_ > 0 ? given_ : stretch.factor(); }

 private:
  double given_;
};

/// Changes the rotary design of every layer. Returns false for models of other positions.
template <class Change>
bool change_rotary(TreatedPositions& positions, const Change& change) {
  positions.plain_rotary();
  if (positions.design.position != PositionType::kRotary) return false;
  for (LayerDesign& layer : positions.design.layers) change(layer.rotary);
  return true;
}

}  // namespace masque::model
