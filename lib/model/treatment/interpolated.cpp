// interpolated: position p reads what training had at p / factor. Between two rows of a table it is
// on the line that joins them; after the last row it is that one.
#include <cmath>

#include <fmt/format.h>

#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

namespace {

class Interpolated final : public PositionTreatment {
 public:
  explicit Interpolated(NamedArguments& arguments)
      : about_(fmt::format("learned or rotary {}: {}", scaling_.effect, scaling_.source)),
        factor_(arguments) {}
  std::string_view about() const override { return about_; }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    const double factor = factor_.value_or(extension.factor());
    positions.plain_table();
    if (positions.table) {
      if (factor == 1 && extension.length <= extension.trained) return;
      positions.longest =
          static_cast<Index>(std::ceil(static_cast<double>(extension.trained) * factor));
      if (extension.length > positions.longest) return;
      for (Index p = 0; p < extension.length; ++p)
        positions.rows.push_back(
            table_rows_between(static_cast<double>(p) / factor, extension.trained));
      return;
    }
    if (!positions.scale_rotary(scaling_, {.factor = factor}))
      refuse(positions.design, "learned or rotary ones");
  }

 private:
  const nn::RotaryScaling& scaling_ = nn::rotary_scaling("rope_pi");
  std::string about_;
  ExtensionFactor factor_;
};

const PositionTreatmentRegistration kRegistration(
    "interpolated", [](NamedArguments& arguments) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<Interpolated>(arguments);
    });

}  // namespace

}  // namespace masque::model
