#include "grow/unit_copies.hpp"

#include <numeric>

#include "base/error.hpp"

namespace masque::grow {

UnitCopies kept_units(Index elements) {
  UnitCopies units;
  units.from.resize(static_cast<std::size_t>(elements));
  std::iota(units.from.begin(), units.from.end(), Index{0});
  return units;
}

UnitCopies repeated_units(Index elements, Index block, Index factor) {
  MASQUE_CHECK(block >= 1 && elements % block == 0 && factor >= 1);
  UnitCopies units;
  units.from.reserve(static_cast<std::size_t>(elements * factor));
  for (Index unit = 0; unit < elements; unit += block) {
    for (Index copy = 0; copy < factor; ++copy) {
      for (Index i = 0; i < block; ++i) units.from.push_back(unit + i);
    }
  }
  return units;
}

void append_units(UnitCopies& units, const UnitCopies& below, Index first) {
  MASQUE_CHECK(units.share.empty() && below.share.empty());
  for (const Index from : below.from) units.from.push_back(first + from);
}

void share_equally(UnitCopies& units, Index factor) {
  units.share.assign(units.from.size(), 1 / static_cast<double>(factor));
}

void share_unequally(UnitCopies& units, Index factor, const RandomStream& stream) {
  Draw draw(stream);
  units.share.resize(units.from.size());
  Index elements = 0;
  for (const Index from : units.from) elements = std::max(elements, from + 1);
  std::vector<double> sums(static_cast<std::size_t>(elements), 0.0);
  MASQUE_CHECK(elements * factor == units.size());
  // Draws in 0.5 … 1.5: none is more than three times another.
  for (std::size_t i = 0; i < units.from.size(); ++i) {
    units.share[i] = 0.5 + draw.uniform();
    sums[static_cast<std::size_t>(units.from[i])] += units.share[i];
  }
  for (std::size_t i = 0; i < units.from.size(); ++i)
    units.share[i] /= sums[static_cast<std::size_t>(units.from[i])];
}

}  // namespace masque::grow
