// The argument `factor` of treatments.
#pragma once

#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

/// The argument `factor`: 0, or at least 1. Throws UsageError.
double read_factor(NamedArguments& spelled);

/// How many times longer texts are taken to be: as given, or with 0 LengthExtension::factor.
class ExtensionFactor {
 public:
  /// Asks for `factor`.
  explicit ExtensionFactor(NamedArguments& spelled) : given_(read_factor(spelled)) {}

  double of(const LengthExtension& extension) const {
    return given_ > 0 ? given_ : extension.factor();
  }

 private:
  double given_;
};

}  // namespace masque::model
