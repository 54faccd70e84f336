// Comparing floating-point results: absolute and relative tolerance, and the worst offender named.
#pragma once

#include <span>
#include <string>

namespace masque::test {

/// Empty if every found[i] is within absolute + relative·|expected[i]| of expected[i] (NaN equals
/// NaN); else one line about the worst one and its index. For CHECK(far_off(…) == "").
std::string far_off(std::span<const double> found, std::span<const double> expected,
                    double absolute, double relative);

}  // namespace masque::test
