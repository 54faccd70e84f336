// Calls of other libraries that run long and cannot look for signals.
#pragma once

namespace masque {

/// While one lives, on any thread, SIGINT, SIGTERM and SIGHUP end the process at once, as SIGKILL
/// does, unless InterruptsPutOff puts them off: outputs are absent as after SIGKILL, and their
/// temporary files stay for the next run. For calls that may take seconds without a place to look
/// for signals. Several may live at once.
class SignalsKill {
 public:
  /// Throws Interrupted if a signal has been noted.
  SignalsKill();
  SignalsKill(const SignalsKill&) = delete;
  SignalsKill& operator=(const SignalsKill&) = delete;
  ~SignalsKill();
};

}  // namespace masque
