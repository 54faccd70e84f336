// interpolated: place p reads what training had at p / factor. Between two rows of a table it is on
// the line that joins them; after the last row it is that one.
#include "model/extension_factor.hpp"
#include "nn/position/rotary_scaling.hpp"

namespace masque::model {

namespace {

class Interpolated final : public PositionTreatment {
 public:
  explicit Interpolated(NamedArguments& spelled) : factor_(spelled) {}
  std::string_view about() const override {
    return "learned or rotary places divided by factor: Chen et al. 2023, arXiv:2306.15595";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    const double factor = factor_.of(extension);
    positions.plain_table();
    if (positions.table) {
      if (factor == 1 && extension.length <= extension.trained) return;
      for (Index p = 0; p < extension.length; ++p)
        positions.rows.push_back(
            table_rows_between(static_cast<double>(p) / factor, extension.trained));
      return;
    }
    const bool done = change_rotary(positions, [factor](RotaryDesign& rotary) {
      nn::interpolate_frequencies(factor, rotary.frequencies);
    });
    if (!done) refuse(positions.design, "learned or rotary ones");
  }

 private:
  ExtensionFactor factor_;
};

const PositionTreatmentRegistration kRegistration(
    "interpolated", [](NamedArguments& spelled) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<Interpolated>(spelled);
    });

}  // namespace

}  // namespace masque::model
