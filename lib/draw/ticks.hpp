// Round numbers along an axis.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::draw {

struct Tick {
  double value = 0;
  std::string text;
};

/// The least of 1, 2, 5, 10, 20, 50 … that is at least `minimum`.
Index round_step(double minimum);

/// A number with up to ten digits: 0.3, 1500, 1e-05.
std::string number_text(double value);

/// A number with three digits, for legends, where a colour shows no more.
std::string legend_number(double value);

/// Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, about `most` at the most.
/// Empty unless low < high, both finite.
std::vector<Tick> linear_ticks(double low, double high, int most);

/// Powers of ten from `low` to `high`, also their double and fivefold where there are few; plain
/// round numbers where there is hardly one. Empty unless 0 < low < high.
std::vector<Tick> log_ticks(double low, double high, int most);

}  // namespace masque::draw
