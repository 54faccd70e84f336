#include "grow/unit_copies.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace masque::grow {

namespace {

/// Divides weights by their sum over the copies of an element.
void share_by(UnitCopies& units, std::vector<double> weights) {
  const Index elements =
      units.from.empty() ? 0 : *std::max_element(units.from.begin(), units.from.end()) + 1;
  std::vector<double> sums(static_cast<std::size_t>(elements), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i)
    sums[static_cast<std::size_t>(units.from[i])] += weights[i];
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] /= sums[static_cast<std::size_t>(units.from[i])];
  units.share = std::move(weights);
}

}  // namespace

UnitCopies kept_units(Index count) {
  UnitCopies units;
  units.from.resize(static_cast<std::size_t>(count));
  std::iota(units.from.begin(), units.from.end(), Index{0});
  return units;
}

UnitCopies repeated_units(Index count, Index factor) {
  MASQUE_CHECK(factor >= 1);
  UnitCopies units;
  units.from.reserve(static_cast<std::size_t>(count * factor));
  for (Index unit = 0; unit < count; ++unit)
    units.from.insert(units.from.end(), static_cast<std::size_t>(factor), unit);
  return units;
}

UnitCopies drawn_units(Index count, Index after, const RandomStream& stream) {
  MASQUE_CHECK(count >= 1 && after >= count);
  UnitCopies units = repeated_units(count, after / count);
  Draw draw(stream);
  const std::vector<Index> order = random_order(count, draw);
  units.from.insert(units.from.end(), order.begin(), order.begin() + after % count);
  std::ranges::sort(units.from);
  return units;
}

UnitCopies in_blocks(const UnitCopies& units, Index block) {
  UnitCopies elements;
  elements.from.reserve(static_cast<std::size_t>(units.size() * block));
  for (const Index unit : units.from) {
    for (Index i = 0; i < block; ++i) elements.from.push_back(unit * block + i);
  }
  return elements;
}

void append_units(UnitCopies& units, const UnitCopies& below, Index first) {
  MASQUE_CHECK(units.share.empty() && below.share.empty());
  for (const Index from : below.from) units.from.push_back(first + from);
  if (units.next.empty() && below.next.empty()) return;
  const auto above = units.from.size() - below.from.size();
  units.next.resize(above, false);
  units.next.insert(units.next.end(), below.next.begin(), below.next.end());
  units.next.resize(units.from.size(), false);
}

void share_equally(UnitCopies& units) {
  share_by(units, std::vector<double>(units.from.size(), 1.0));
}

void share_unequally(UnitCopies& units, const RandomStream& stream) {
  Draw draw(stream);
  // Draws in 0.5 … 1.5: none is more than three times another.
  std::vector<double> weights(units.from.size());
  for (double& weight : weights) weight = 0.5 + draw.uniform();
  share_by(units, std::move(weights));
}

}  // namespace masque::grow
