// alibi: what is far away loses, with the positions that the model has.
#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

namespace {

class Alibi final : public PositionTreatment {
 public:
  std::string_view about() const override {
    return "-slope |i-j| added to scores, with the model's own positions: Press et al. 2021, "
           "arXiv:2108.12409";
  }
  void apply(const LengthExtension& /*extension*/, TreatedPositions& positions) const override {
    positions.plain_table();
    positions.plain_rotary();
    Design& design = positions.design;
    const PositionType own = design.position;
    const bool free = own == PositionType::kNone || own == PositionType::kLearned ||
                      own == PositionType::kSinusoidal || own == PositionType::kRotary;
    if (!free || !design.variants.position.empty() || !design.variants.mixer.empty())
      refuse(design, "learned, sinusoidal, rotary or none");
    design.variants.position = "alibi";
  }
};

const PositionTreatmentRegistration kRegistration(
    "alibi", [](NamedArguments&) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<Alibi>();
    });

}  // namespace

}  // namespace masque::model
