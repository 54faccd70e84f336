// own: positions as the model has them.
#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

namespace {

class Own final : public PositionTreatment {
 public:
  std::string_view about() const override { return "positions as the model has them"; }
  void apply(const LengthExtension& /*extension*/, TreatedPositions& /*positions*/) const override {
  }
};

const PositionTreatmentRegistration kRegistration(
    "own",
    [](NamedArguments&) -> std::unique_ptr<PositionTreatment> { return std::make_unique<Own>(); });

}  // namespace

}  // namespace masque::model
