// own: the model's own positions, unchanged.
#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

namespace {

class Own final : public PositionTreatment {
 public:
  std::string_view about() const override { return "the model's own positions, unchanged"; }
  void apply(const LengthExtension& /*extension*/, TreatedPositions& /*positions*/) const override {
  }
};

const PositionTreatmentRegistration kRegistration(
    "own",
    [](NamedArguments&) -> std::unique_ptr<PositionTreatment> { return std::make_unique<Own>(); });

}  // namespace

}  // namespace masque::model
