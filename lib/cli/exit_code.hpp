// How every tool ends.
#pragma once

namespace masque::cli {

/// Exit codes, the same in all tools. A signal ends with 128 + its number (SIGINT 130, a closed
/// pipe 141).
enum class ExitCode {
  kDone = 0,      ///< done
  kFound = 1,     ///< done, and the answer is "no": a difference, a broken rule
  kUsage = 2,     ///< the command line is wrong
  kInput = 3,     ///< input or I/O error
  kInternal = 4,  ///< a bug of ours
};

}  // namespace masque::cli
