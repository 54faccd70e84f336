// leaky_rerope: distances grow `factor` times slower beyond a window; where no factor is given, so
// that the longest one is the longest of training.
#include <algorithm>

#include <fmt/format.h>

#include "model/bent_rotary.hpp"
#include "model/extension_factor.hpp"

namespace masque::model {

namespace {

class LeakyRerope final : public PositionTreatment {
 public:
  explicit LeakyRerope(NamedArguments& spelled)
      : window_(spelled.count("window", 0, 0, Index{1} << 40)), factor_(read_factor(spelled)) {}
  std::string_view about() const override {
    return "rotary distances growing factor times slower beyond window: Su 2023, "
           "kexue.fm/archives/9708";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    const auto arguments = rotary_arguments(positions);
    if (!arguments) refuse(positions.design, kPlainRotary);
    const Index window = window_ > 0 ? window_ : std::max<Index>(extension.trained / 2, 1);
    const auto beyond = static_cast<double>(std::max<Index>(extension.trained - window, 1));
    const double factor =
        factor_ > 0 ? factor_
                    : std::max(1.0, static_cast<double>(extension.length - window) / beyond);
    replace_rotary_with_rerope(
        fmt::format("leaky_rerope({}, window={}, factor={})", *arguments, window, factor),
        positions);
  }

 private:
  Index window_;
  double factor_;
};

const PositionTreatmentRegistration kRegistration(
    "leaky_rerope", [](NamedArguments& spelled) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<LeakyRerope>(spelled);
    });

}  // namespace

}  // namespace masque::model
