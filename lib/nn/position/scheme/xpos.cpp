// xpos: RoPE whose pairs t also grow for queries and shrink for keys, by ξ_t^(±position/512) with
// ξ_t = (2t + 0.4 d) / (1.4 d): scores decay with the distance i − j ≥ 0, and grow without bound
// for keys on the right. Constants and centred positions are those of torchscale.
#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

class Xpos final : public PositionSchemeOf<Xpos> {
 public:
  explicit Xpos(const RotarySettings& settings, double scale_base)
      : settings_(settings), scale_base_(scale_base) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.query_key = true;
    facts.masks = MaskSupport::kCausal;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("", "4 n d", "Sun et al. 2022, arXiv:2212.10554");
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    const Index size = problem.shape.head_size;
    require_even(name(), "head size", size);
    const auto& [queries, keys] = problem.positions;
    // Half of the powers below 1 and half above, so that neither side leaves the range of float.
    Index length = 0;
    for (const Index position : queries) length = std::max(length, position + 1);
    for (const Index position : keys) length = std::max(length, position + 1);
    const Index centre = (length + 1) / 2;
    return std::make_unique<RotaryTerms<T>>(settings_.layout, size,
                                            table<T>(size, queries, centre, 1),
                                            table<T>(size, keys, centre, -1));
  }

 private:
  template <class T>
  kernel::RotaryTable<T> table(Index size, std::span<const Index> positions, Index centre,
                               double sign) const {
    std::vector<Index> centred(positions.begin(), positions.end());
    for (Index& position : centred) position -= centre;
    const std::vector<double> frequencies = kernel::rotary_frequencies(settings_.base, size);
    auto table = kernel::rotary_table<T>(frequencies, centred);
    const double width = static_cast<double>(size);
    for (Index i = 0; i < table.cosine.rows(); ++i) {
      const double power =
          sign * static_cast<double>(centred[static_cast<std::size_t>(i)]) / scale_base_;
      for (Index t = 0; t < table.cosine.columns(); ++t) {
        const double xi = (static_cast<double>(2 * t) + 0.4 * width) / (1.4 * width);
        const T by = static_cast<T>(std::pow(xi, power));
        table.cosine.view().at(i, t) *= by;
        table.sine.view().at(i, t) *= by;
      }
    }
    return table;
  }

  RotarySettings settings_;
  double scale_base_;
};

const PositionRegistration kRegistration(
    "xpos", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = rotary_settings(arguments);
      return std::make_unique<Xpos>(settings, arguments.number("scale_base", 512, 1, 1e9));
    });

}  // namespace

}  // namespace masque::nn
