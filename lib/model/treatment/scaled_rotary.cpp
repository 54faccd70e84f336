// ntk, ntk_mixed, yarn: rotary positions changed as the methods of nn/position/rotary_scaling.cpp
// say.
#include <algorithm>

#include <fmt/format.h>

#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

namespace {

/// rope_pi is `interpolated`, which serves learned tables too.
bool is_own_treatment(const nn::RotaryScaling& scaling) {
  return !scaling.method().empty() && scaling.method() != "pi";
}

const nn::RotaryScaling& scaling_of(std::string_view treatment) {
  return *std::ranges::find(nn::rotary_scalings(), treatment, &nn::RotaryScaling::method);
}

class ScaledRotary final : public PositionTreatment {
 public:
  explicit ScaledRotary(NamedArguments& arguments)
      : scaling_(scaling_of(arguments.name())),
        about_(fmt::format("rotary {}: {}", scaling_.effect, scaling_.source)),
        factor_(arguments) {
    for (const nn::RotaryParameter& parameter : scaling_.parameters) {
      // The texts say these two.
      if (parameter.value == &nn::RotaryArguments::factor ||
          parameter.value == &nn::RotaryArguments::length)
        continue;
      parameter.read(arguments, arguments_);
    }
  }
  std::string_view about() const override { return about_; }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    nn::RotaryArguments arguments = arguments_;
    arguments.factor = factor_.value_or(extension.factor());
    arguments.length = static_cast<double>(extension.trained);
    if (!positions.scale_rotary(scaling_, arguments)) refuse(positions.design, "rotary ones");
  }

 private:
  const nn::RotaryScaling& scaling_;
  std::string about_;
  ExtensionFactor factor_;
  nn::RotaryArguments arguments_;
};

/// Registers the methods.
struct ScaledRotaryRegistration {
  ScaledRotaryRegistration() {
    for (const nn::RotaryScaling& scaling : nn::rotary_scalings()) {
      if (!is_own_treatment(scaling)) continue;
      PositionTreatmentRegistration(
          scaling.method(), [](NamedArguments& arguments) -> std::unique_ptr<PositionTreatment> {
            return std::make_unique<ScaledRotary>(arguments);
          });
    }
  }
};
const ScaledRotaryRegistration kRegistration;

}  // namespace

}  // namespace masque::model
