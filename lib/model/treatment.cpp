#include "model/treatment.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/maker.hpp"
#include "base/named_arguments.hpp"
#include "model/variants.hpp"

namespace masque::model {

namespace {

using TreatmentMakers = Makers<PositionTreatment>;
constexpr const char* kWhat = "treatment of positions";

std::string scheme_name(const Design& design) {
  if (!design.variants.mixer.empty()) return design.variants.mixer;
  if (!design.variants.position.empty()) return design.variants.position;
  return std::string(own_position(design.position).spoken);
}

}  // namespace

double LengthExtension::factor() const {
  MASQUE_CHECK(trained > 0);
  return std::max(1.0, static_cast<double>(length) / static_cast<double>(trained));
}

ExtensionFactor::ExtensionFactor(NamedArguments& arguments)
    : given_(arguments.number("factor", 0, 0, 1e6)) {
  if (given_ == 0 || given_ >= 1) return;
  throw UsageError(
      fmt::format("{}: factor is {}, expected 0 or at least 1", arguments.name(), given_));
}

void TreatedPositions::plain_table() {
  const auto scheme = position_scheme(design);
  const OwnPosition* own = scheme ? own_position(scheme->name()) : nullptr;
  if (own == nullptr || own->type != PositionType::kLearned) return;
  design.variants.position.clear();
  design.position = own->type;
  table = true;
}

void TreatedPositions::plain_rotary() {
  if (const auto rotary = rotary_of(design)) set_rotary(*rotary, design);
}

bool TreatedPositions::scale_rotary(const nn::RotaryScaling& scaling,
                                    const nn::RotaryArguments& arguments) {
  plain_rotary();
  if (design.position != PositionType::kRotary) return false;
  for (LayerDesign& layer : design.layers) {
    scaling.scale(arguments, layer.rotary.frequencies);
    layer.rotary.factor *= scaling.amplitude(arguments);
  }
  return true;
}

void PositionTreatment::refuse(const Design& design, std::string_view expected) const {
  throw UsageError(fmt::format("{}: found {} positions, expected {}", text_,
                               escape(scheme_name(design)), expected));
}

std::unique_ptr<const PositionTreatment> parse_position_treatment(std::string_view text) {
  NamedArguments arguments(text);
  std::unique_ptr<PositionTreatment> treatment = TreatmentMakers::make(kWhat, arguments);
  treatment->text_ = text;
  return treatment;
}

std::vector<PositionTreatmentInfo> position_treatments() {
  std::vector<PositionTreatmentInfo> all;
  for (const std::string& name : TreatmentMakers::names()) {
    NamedArguments arguments(name);
    const std::string about(TreatmentMakers::make(kWhat, arguments)->about());
    all.push_back({name, arguments.standards(), about});
  }
  return all;
}

PositionTreatmentRegistration::PositionTreatmentRegistration(std::string_view name, Make make) {
  TreatmentMakers::add(name, make);
}

}  // namespace masque::model
