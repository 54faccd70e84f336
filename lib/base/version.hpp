// The version, set by the build from the project's.
#pragma once

namespace masque {

/// The version of the library and its tools, as "1.2.3".
inline constexpr const char* kVersion = MASQUE_VERSION;
/// The day of that version, as manual pages show it; not that of the build, whose output is the
/// same every day.
inline constexpr const char* kVersionDate = "2026-11-27";

}  // namespace masque
