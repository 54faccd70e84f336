// yarn: slow pairs of rotary positions are interpolated, fast ones stay, scores grow.
#include "model/extension_factor.hpp"
#include "nn/position/rotary_scaling.hpp"

namespace masque::model {

namespace {

class Yarn final : public PositionTreatment {
 public:
  explicit Yarn(NamedArguments& spelled)
      : factor_(spelled),
        fast_(spelled.number("beta_fast", 32, 0, 1e9)),
        slow_(spelled.number("beta_slow", 1, 0, fast_)) {}
  std::string_view about() const override {
    return "rotary frequencies blended by turns within the trained length: Peng et al. 2023, "
           "arXiv:2309.00071";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    const nn::YarnScaling yarn{factor_.of(extension), static_cast<double>(extension.trained), fast_,
                               slow_};
    const bool done = change_rotary(positions, [&yarn](RotaryDesign& rotary) {
      yarn.scale(rotary.frequencies);
      rotary.factor *= yarn.amplitude();
    });
    if (!done) refuse(positions.design, "rotary ones");
  }

 private:
  ExtensionFactor factor_;
  double fast_, slow_;
};

const PositionTreatmentRegistration kRegistration(
    "yarn", [](NamedArguments& spelled) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<Yarn>(spelled);
    });

}  // namespace

}  // namespace masque::model
