// A signal asks a long loop to stop; the loop looks here and unwinds, removing what it made.
#pragma once

namespace masque {

/// Notes SIGINT, SIGTERM and SIGHUP instead of dying at once; one that is ignored stays ignored. A
/// second signal of the same kind kills as usual. Called once, by the tool's start.
void catch_interrupts();

/// Throws Interrupted if one of them arrived, and nothing puts that off. Cheap; safe from any
/// thread.
void throw_if_interrupted();

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

}  // namespace masque
