// Independent pieces of work over a few threads.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/types.hpp"

namespace masque {

/// Number of threads that `-j 0` or no `-j` means: the processors this process may use.
int default_threads();

/// Calls work(0) … work(count − 1), each once, on up to `threads` threads (the caller's included;
/// fewer where the system gives no more), in increasing order of start. `threads` ≤ 0 means
/// default_threads(). The first exception stops further pieces and is rethrown here; a noted signal
/// does the same, as Interrupted. Returns when all threads have ended.
///
/// Results must not depend on which thread runs a piece: sums go into one slot per piece and are
/// added in order afterwards.
void parallel_for(Index count, int threads, const std::function<void(Index)>& work);

/// A loop whose items go to whichever thread is free: what parallel_for and the kernels' team have
/// in common. Every thread calls run(); finish() comes after all of them.
class SharedLoop {
 public:
  /// work(0) … work(count − 1), started in this order. `work` outlives the loop.
  SharedLoop(Index count, const std::function<void(Index)>& work) : count_(count), work_(work) {}

  /// Does items until none is left, or one has thrown, or a signal was noted. Throws nothing.
  void run();
  /// Rethrows the first exception of `work`, or Interrupted; returns if there was none.
  void finish() const;

 private:
  Index count_;
  const std::function<void(Index)>& work_;
  std::atomic<Index> next_{0};
  std::mutex mutex_;
  std::exception_ptr first_;
};

/// Calls work(), and returns what it throws instead of throwing it; nullptr if nothing. To be
/// rethrown: for results that must be handed on in order before the error.
std::exception_ptr caught(const std::function<void()>& work);

/// Calls work(), and returns the message, its fields marked, of an InputError that it throws;
/// nothing if it throws none. Other errors pass.
std::optional<std::string> input_error_message(const std::function<void()>& work);
/// Calls work(), and returns the message of a UsageError in the same way: for an expression that
/// stands in a file, not on the command line.
std::optional<std::string> usage_error_message(const std::function<void()>& work);

}  // namespace masque
