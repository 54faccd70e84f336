// own: positions as the model has them.
#include "base/spelled.hpp"
#include "model/treatment.hpp"

namespace masque::model {

namespace {

class Own final : public PositionTreatment {
 public:
  std::string_view about() const override { return "positions as the model has them"; }
  void apply(const Stretch& /*stretch*/, TreatedPositions& /*positions*/) const override {}
};

const PositionTreatmentRegistration kRegistration(
    "own", [](Spelled&) -> std::unique_ptr<PositionTreatment> { return std::make_unique<Own>(); });

}  // namespace

}  // namespace masque::model
