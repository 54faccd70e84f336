// Round numbers along an axis.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::draw {

/// A number along an axis.
struct Tick {
  double value = 0;  ///< its place
  std::string text;  ///< number_text(value)
};

/// The least of 1, 2, 5, 10, 20, 50 … that is at least `minimum`.
Index round_step(double minimum);

/// `value` with up to ten significant digits: 0.3, 1500, 1e-05.
std::string number_text(double value);

/// `value` with up to three significant digits, for legends, where a colour shows no more.
std::string legend_number(double value);

/// Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, at most about `most`.
/// Empty unless low < high, both finite.
std::vector<Tick> linear_ticks(double low, double high, int most);

/// Powers of ten from `low` to `high`, also their double and fivefold where these are `most` at the
/// most; plain round numbers where there is hardly one. Empty unless 0 < low < high, both finite.
std::vector<Tick> log_ticks(double low, double high, int most);

}  // namespace masque::draw
