// rerope: distances stop growing at a window, half of the trained length where none is given.
#include <algorithm>

#include <fmt/format.h>

#include "base/named_arguments.hpp"
#include "model/bent_rotary.hpp"

namespace masque::model {

namespace {

class Rerope final : public PositionTreatment {
 public:
  explicit Rerope(NamedArguments& spelled)
      : window_(spelled.count("window", 0, 0, Index{1} << 40)) {}
  std::string_view about() const override {
    return "rotary distances of at most window (0: half of the trained length): Su 2023, "
           "kexue.fm/archives/9708";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    const auto arguments = rotary_arguments(positions);
    if (!arguments) refuse(positions.design, kPlainRotary);
    const Index window = window_ > 0 ? window_ : std::max<Index>(extension.trained / 2, 1);
    replace_rotary_with_rerope(fmt::format("rerope({}, window={})", *arguments, window), positions);
  }

 private:
  Index window_;
};

const PositionTreatmentRegistration kRegistration(
    "rerope", [](NamedArguments& spelled) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<Rerope>(spelled);
    });

}  // namespace

}  // namespace masque::model
