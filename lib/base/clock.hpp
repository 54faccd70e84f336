// Time that passes: for budgets and reports, never for a result.
#pragma once

#include <chrono>

namespace masque {

/// Seconds from `begin` until now, by a clock that only goes forward.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace masque
