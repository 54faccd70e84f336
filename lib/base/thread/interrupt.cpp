#include "base/thread/interrupt.hpp"

#include <atomic>
#include <csignal>

#include "base/error.hpp"

namespace masque {

namespace {

std::atomic<int> g_signal{0};
std::atomic<int> g_put_off{0};
std::atomic<int> g_kills{0};
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  g_signal.store(signal);
  // SA_RESETHAND: its action is the default one again, and kills when the handler returns.
  if (g_kills.load() != 0 && g_put_off.load() == 0) std::raise(signal);
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = note;
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: a blocked read returns
    sigaction(signal, &action, nullptr);
  }
}

InterruptsHeld::InterruptsHeld() : signal_(g_signal.exchange(0)) {}

InterruptsHeld::~InterruptsHeld() {
  if (signal_ != 0) g_signal.store(signal_);
}

int noted_interrupt() { return g_signal.load(std::memory_order_relaxed); }

InterruptsPutOff::InterruptsPutOff() { g_put_off.fetch_add(1); }

InterruptsPutOff::~InterruptsPutOff() { g_put_off.fetch_sub(1); }

SignalsKill::SignalsKill() {
  g_kills.fetch_add(1);
  if (noted_interrupt() == 0) return;
  g_kills.fetch_sub(1);
  throw_if_interrupted();
  g_kills.fetch_add(1);
}

SignalsKill::~SignalsKill() { g_kills.fetch_sub(1); }

void throw_if_interrupted() {
  if (g_put_off.load(std::memory_order_relaxed) != 0) return;
  if (const int signal = noted_interrupt()) throw Interrupted(signal);
}

}  // namespace masque
