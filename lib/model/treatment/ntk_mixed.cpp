// ntk_mixed: rotary positions as digits of mixed radix.
#include "model/extension_factor.hpp"
#include "nn/position/rotary_scaling.hpp"

namespace masque::model {

namespace {

class NtkMixed final : public PositionTreatment {
 public:
  explicit NtkMixed(NamedArguments& spelled)
      : factor_(spelled), power_(spelled.number("power", 0.625, 0, 8)) {}
  std::string_view about() const override {
    return "rotary frequencies divided by exp(a t^power): Su 2023, kexue.fm/archives/9706";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    const double factor = factor_.of(extension);
    const bool done = change_rotary(positions, [&](RotaryDesign& rotary) {
      nn::scale_ntk_mixed(factor, power_, rotary.frequencies);
    });
    if (!done) refuse(positions.design, "rotary ones");
  }

 private:
  ExtensionFactor factor_;
  double power_;
};

const PositionTreatmentRegistration kRegistration(
    "ntk_mixed", [](NamedArguments& spelled) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<NtkMixed>(spelled);
    });

}  // namespace

}  // namespace masque::model
