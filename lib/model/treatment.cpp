#include "model/treatment.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/registry/maker.hpp"
#include "base/string/named_arguments.hpp"
#include "model/rotary_config.hpp"
#include "model/variants.hpp"

namespace masque::model {

namespace {

constexpr const char* kWhat = "treatment of positions";

std::string scheme_name(const Design& design) {
  if (design.variants.mixer != nullptr) return std::string(mixer_name(design));
  if (!design.variants.position.empty()) return design.variants.position.text();
  return std::string(own_position(design.position).spoken);
}

/// The argument `factor` of treatments: how many times longer texts are taken to be.
class ExtensionFactor {
 public:
  /// Asks `arguments` for it. Throws UsageError unless it is 0 (also if it is absent) or from 1 to
  /// 1e6.
  explicit ExtensionFactor(NamedArguments& arguments)
      : given_(arguments.number("factor", 0, 0, 1e6)) {
    if (given_ == 0 || given_ >= 1) return;
    throw UsageError(
        fmt::format("{}: factor is {}, expected 0 or at least 1", arguments.name(), given_));
  }
  /// As given; with 0 `by_length`, what follows from the lengths.
  double value_or(double by_length) const { return given_ > 0 ? given_ : by_length; }

 private:
  double given_;
};

/// own: the model's own positions, unchanged.
class Own final : public PositionTreatment {
 public:
  std::string_view about() const override { return "the model's own positions, unchanged"; }
  void apply(const LengthExtension& /*extension*/, TreatedPositions& /*positions*/) const override {
  }
};

// ntk, ntk_mixed, yarn: rotary positions changed as the methods of nn/position/rotary_scaling.cpp
// say.

/// rope_pi is `interpolated`, which serves learned tables too.
bool is_own_treatment(const nn::RotaryScaling& scaling) {
  return !scaling.method().empty() && scaling.method() != "pi";
}

const nn::RotaryScaling& scaling_of(std::string_view treatment) {
  return *std::ranges::find(nn::rotary_scalings(), treatment, &nn::RotaryScaling::method);
}

class ScaledRotary final : public PositionTreatment {
 public:
  explicit ScaledRotary(NamedArguments& arguments)
      : scaling_(scaling_of(arguments.name())),
        about_(fmt::format("rotary {}: {}", scaling_.effect, scaling_.source)),
        factor_(arguments) {
    for (const nn::RotaryParameter& parameter : scaling_.parameters) {
      // The texts say these two.
      if (parameter.value == &nn::RotaryArguments::factor ||
          parameter.value == &nn::RotaryArguments::length)
        continue;
      parameter.read(arguments, arguments_);
    }
  }
  std::string_view about() const override { return about_; }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    nn::RotaryArguments arguments = arguments_;
    arguments.factor = factor_.value_or(extension.factor());
    arguments.length = static_cast<double>(extension.trained);
    if (!positions.scale_rotary(scaling_, arguments)) refuse(positions.design, "rotary ones");
  }

 private:
  const nn::RotaryScaling& scaling_;
  std::string about_;
  ExtensionFactor factor_;
  nn::RotaryArguments arguments_;
};

std::unique_ptr<PositionTreatment> make_scaled_rotary(NamedArguments& arguments) {
  return std::make_unique<ScaledRotary>(arguments);
}

/// interpolated: position p reads what training had at p / factor. Between two rows of a table it
/// is on the line that joins them; after the last row it is that one.
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

/// hierarchical: a learned table of N rows reaches N² positions, as sums of two of them.
class Hierarchical final : public PositionTreatment {
 public:
  explicit Hierarchical(NamedArguments& arguments)
      : alpha_(arguments.number("alpha", 0.4, 0.01, 0.99)) {}
  std::string_view about() const override {
    return "learned rows: alpha of u_q and 1 - alpha of u_r at position q N + r: Su 2020, "
           "kexue.fm/archives/7947";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    positions.plain_table();
    if (!positions.table) refuse(positions.design, "learned ones");
    if (extension.length <= extension.trained) return;
    positions.longest = masque::table_positions(extension.trained, alpha_);
    if (extension.length > positions.longest) return;
    for (Index p = 0; p < extension.length; ++p)
      positions.rows.push_back(masque::table_rows(p, extension.trained, alpha_));
  }

 private:
  double alpha_;
};

// rerope: distances stop growing at a window, half of the trained length where none is given.
// leaky_rerope: beyond it they grow `factor` times slower; where no factor is given, so that the
// longest one is the longest of training.

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
  if (rotary.values || rotary.factor != 1 || rotated == 0 || rotary.long_from > 0 ||
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

/// alibi: what is far away loses, with the positions that the model has.
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
    if (!free || !design.variants.position.empty() || design.variants.mixer != nullptr)
      refuse(design, "learned, sinusoidal, rotary or none");
    design.variants.position = "alibi";
  }
};

constexpr Maker<PositionTreatment> kTreatments[] = {
    {"alibi",
     [](NamedArguments&) -> std::unique_ptr<PositionTreatment> {
       return std::make_unique<Alibi>();
     }},
    {"hierarchical",
     [](NamedArguments& arguments) -> std::unique_ptr<PositionTreatment> {
       return std::make_unique<Hierarchical>(arguments);
     }},
    {"interpolated",
     [](NamedArguments& arguments) -> std::unique_ptr<PositionTreatment> {
       return std::make_unique<Interpolated>(arguments);
     }},
    {kLeaky, make_rerope},
    {"own",
     [](NamedArguments&) -> std::unique_ptr<PositionTreatment> { return std::make_unique<Own>(); }},
    {"rerope", make_rerope},
};

/// All of them; those that scale the angles of rotary positions are rows of nn's table.
const Makers<PositionTreatment>& all_treatments() {
  static const Makers<PositionTreatment> kAll = [] {
    Makers<PositionTreatment> makers(kTreatments);
    for (const nn::RotaryScaling& scaling : nn::rotary_scalings()) {
      if (is_own_treatment(scaling)) makers.add({scaling.method(), make_scaled_rotary});
    }
    return makers;
  }();
  return kAll;
}

}  // namespace

double LengthExtension::factor() const {
  MASQUE_CHECK(trained > 0);
  return std::max(1.0, static_cast<double>(length) / static_cast<double>(trained));
}

void TreatedPositions::plain_table() {
  const auto scheme = position_scheme(design);
  const OwnPosition* own = scheme ? own_position(scheme->name()) : nullptr;
  if (own == nullptr || own->type != PositionType::kLearned) return;
  design.variants.position = {};
  design.position = own->type;
  table = true;
}

void TreatedPositions::plain_rotary() {
  if (const auto rotary = rotary_of(design)) set_rotary(*rotary, design);
}

bool TreatedPositions::scale_rotary(const nn::RotaryScaling& scaling,
                                    const nn::RotaryArguments& arguments) {
  plain_rotary();
  // Angles that depend on the length have a scaling already.
  if (design.position != PositionType::kRotary || long_from(design) > 0) return false;
  for (LayerDesign& layer : design.layers) {
    if (layer.rotary.frequencies.empty()) continue;
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
  std::unique_ptr<PositionTreatment> treatment = all_treatments().make(kWhat, arguments);
  treatment->text_ = text;
  return treatment;
}

std::vector<PositionTreatmentInfo> position_treatments() {
  std::vector<PositionTreatmentInfo> all;
  for (const std::string& name : all_treatments().names()) {
    NamedArguments arguments(name);
    const std::string about(all_treatments().make(kWhat, arguments)->about());
    all.push_back({name, arguments.standards(), about});
  }
  return all;
}

}  // namespace masque::model
