// Whether numbers are numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace masque {

/// The index of the first NaN or infinity of `values`; nothing if there is none. As fast as memory.
std::optional<std::size_t> first_not_finite(std::span<const float> values);
/// The same for doubles: the index of the first of `values` that is not finite.
std::optional<std::size_t> first_not_finite(std::span<const double> values);

}  // namespace masque
