// The version, set by the build from the project's.
#pragma once

namespace masque {

/// The version of the library and its tools, as "1.2.3".
inline constexpr const char* kVersion = MASQUE_VERSION;

}  // namespace masque
