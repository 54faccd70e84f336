// An interval for an unknown number.
#pragma once

namespace masque::probe {

/// The level of the intervals that tools print: the share of repetitions of a whole measurement
/// whose interval contains the true value.
constexpr double kIntervalLevel = 0.95;

/// Both ends belong to it.
struct Interval {
  double low = 0;   ///< lower end
  double high = 0;  ///< upper end
};

}  // namespace masque::probe
