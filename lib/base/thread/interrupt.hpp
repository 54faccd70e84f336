// A signal asks a long loop to stop; the loop looks here and unwinds, removing what it made.
#pragma once

#include <cstdint>

namespace masque {

/// Notes SIGINT, SIGTERM and SIGHUP instead of dying at once; one that is ignored stays ignored. A
/// second signal of the same kind kills as usual. Called once, by the tool's start.
void catch_interrupts();

/// Throws Interrupted if one of them arrived, and nothing puts that off. Cheap; safe from any
/// thread.
void throw_if_interrupted();

/// throw_if_interrupted at every 4096th call: for loops that do little at each step, as those over
/// the characters of a text. For one thread.
class SparseLooks {
 public:
  /// The next step of the loop. Throws as throw_if_interrupted.
  void step() {
    if (++steps_ % 4096 == 0) throw_if_interrupted();
  }

 private:
  std::uint32_t steps_ = 0;
};

/// The signal that arrived; 0: none. Cheap; safe from any thread.
int noted_interrupt();

/// Forgets a noted signal while it lives, for work that must still be finished, as saving what was
/// reached; another signal of the same kind kills meanwhile. One at a time.
class InterruptsHeld {
 public:
  /// Takes the noted signal away, if there is one; the destructor notes it again.
  InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;
  ~InterruptsHeld();

  /// Whether a signal had been noted.
  bool interrupted() const { return signal_ != 0; }

 private:
  int signal_;
};

/// While one lives, on any thread, a signal is only noted: `throw_if_interrupted` does nothing on
/// all threads. For work that several processes must end together, and that is short. Several may
/// live at once.
class InterruptsPutOff {
 public:
  /// Puts signals off until the destructor.
  InterruptsPutOff();
  InterruptsPutOff(const InterruptsPutOff&) = delete;
  InterruptsPutOff& operator=(const InterruptsPutOff&) = delete;
  ~InterruptsPutOff();
};

// Calls of other libraries that run long and cannot look for signals.

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
