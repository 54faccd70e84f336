// Whether numbers are numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace masque {

/// Place of the first NaN or infinity; nothing if there is none. As fast as memory.
std::optional<std::size_t> first_not_finite(std::span<const float> values);
std::optional<std::size_t> first_not_finite(std::span<const double> values);

}  // namespace masque
