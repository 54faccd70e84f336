// The version, set by the build from the project's.
#pragma once

namespace masque {

inline constexpr const char* kVersion = MASQUE_VERSION;

}  // namespace masque
