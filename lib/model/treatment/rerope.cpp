// rerope: distances stop growing at a window, half of the trained length where none is given.
// leaky_rerope: beyond it they grow `factor` times slower; where no factor is given, so that the
// longest one is the longest of training.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/named_arguments.hpp"
#include "model/rotary_config.hpp"
#include "model/treatment.hpp"
#include "model/variants.hpp"

namespace masque::model {

namespace {

constexpr std::string_view kLeaky = "leaky_rerope";
// Checkpoints of transformers have frequencies that were made in float.
constexpr double kTolerance = 1e-6;

/// "layout=half, base=10000, size=64": the schemes of nn that rotate features of every head as the
/// design does in all layers. Nothing if none does: scaled frequencies, rotated values, another
/// scale of scores than 1/√(head size).
std::optional<std::string> rotary_arguments(const Design& design) {
  if (design.position != PositionType::kRotary) return std::nullopt;
  const RotaryDesign& rotary = design.layers.front().rotary;
  for (const LayerDesign& layer : design.layers) {
    if (layer.rotary != rotary) return std::nullopt;
  }
  const double scale = 1 / std::sqrt(static_cast<double>(position_shape(design).head_size));
  const Index rotated = 2 * std::ssize(rotary.frequencies);
  if (rotary.values || rotary.factor != 1 || rotated == 0 ||
      !(std::abs(design.attention_scale - scale) <= kTolerance * scale))
    return std::nullopt;
  const auto base = rotary_base(rotary.frequencies, kTolerance);
  if (!base || *base < 1 || *base > 1e12) return std::nullopt;
  return fmt::format("layout={}, base={}, size={}",
                     rotary.layout == kernel::RotaryLayout::kHalf ? "half" : "adjacent", *base,
                     rotated);
}

class Rerope final : public PositionTreatment {
 public:
  explicit Rerope(NamedArguments& arguments)
      : window_(arguments.count("window", 0, 0, Index{1} << 40)) {
    if (arguments.name() == kLeaky) factor_.emplace(arguments);
  }
  std::string_view about() const override {
    return factor_ ? "rotary distances growing factor times slower beyond window: Su 2023, "
                     "kexue.fm/archives/9708"
                   : "rotary distances of at most window (0: half of the trained length): Su 2023, "
                     "kexue.fm/archives/9708";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    positions.plain_rotary();
    Design& design = positions.design;
    const auto rotary = rotary_arguments(design);
    if (!rotary) {
      refuse(design,
             "rotary ones with plain frequencies that are the same in all layers, of queries and "
             "keys");
    }
    const Index window = window_ > 0 ? window_ : std::max<Index>(extension.trained / 2, 1);
    std::string arguments = fmt::format("{}, window={}", *rotary, window);
    if (factor_) {
      const auto beyond = static_cast<double>(std::max<Index>(extension.trained - window, 1));
      const auto longest = static_cast<double>(extension.length - window);
      arguments += fmt::format(", factor={}", factor_->value_or(std::max(1.0, longest / beyond)));
    }
    // The scheme makes the whole score.
    design.position = PositionType::kNone;
    design.variants.position = fmt::format("{}({})", factor_ ? kLeaky : "rerope", arguments);
    design.attention_scale = position_scheme(design)->scale(position_shape(design));
  }

 private:
  Index window_;
  std::optional<ExtensionFactor> factor_;  ///< of leaky_rerope
};

std::unique_ptr<PositionTreatment> make_rerope(NamedArguments& arguments) {
  return std::make_unique<Rerope>(arguments);
}

const PositionTreatmentRegistration kRegistration("rerope", make_rerope);
const PositionTreatmentRegistration kLeakyRegistration(kLeaky, make_rerope);

}  // namespace

}  // namespace masque::model
