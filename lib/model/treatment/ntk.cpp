// ntk: a larger base of rotary positions.
#include "model/extension_factor.hpp"
#include "nn/position/rotary_scaling.hpp"

namespace masque::model {

namespace {

class Ntk final : public PositionTreatment {
 public:
  explicit Ntk(NamedArguments& spelled) : factor_(spelled) {}
  std::string_view about() const override {
    return "rotary base times factor^(d/(d-2)): bloc97 2023; Su 2023, kexue.fm/archives/9675";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    const double factor = factor_.of(extension);
    const bool done = change_rotary(
        positions, [factor](RotaryDesign& rotary) { nn::scale_ntk(factor, rotary.frequencies); });
    if (!done) refuse(positions.design, "rotary ones");
  }

 private:
  ExtensionFactor factor_;
};

const PositionTreatmentRegistration kRegistration(
    "ntk", [](NamedArguments& spelled) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<Ntk>(spelled);
    });

}  // namespace

}  // namespace masque::model
