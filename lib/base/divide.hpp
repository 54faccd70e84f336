// Division that rounds up: of sizes into blocks.
#pragma once

#include <concepts>
#include <type_traits>

namespace masque {

/// Returns `total` / `part`, rounded up: the number of parts of `part` elements, the last one
/// perhaps smaller, that `total` elements have. `total` is at least 0, `part` at least 1, and their
/// sum fits the type.
template <std::integral Total, std::integral Part>
constexpr std::common_type_t<Total, Part> divide_up(Total total, Part part) {
  static_assert(std::is_signed_v<Total> == std::is_signed_v<Part>);
  return (total + part - 1) / part;
}

/// Returns the least multiple of `part` that is not less than `total`. As divide_up().
template <std::integral Total, std::integral Part>
constexpr std::common_type_t<Total, Part> round_up(Total total, Part part) {
  return divide_up(total, part) * part;
}

}  // namespace masque
