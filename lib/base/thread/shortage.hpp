// What goes on when the system has no threads or no memory left.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace masque {

/// Adds to `threads` one that runs a copy of `body`, which must not throw; returns false if the
/// system has none left, or no memory for one: the work is then done by the threads that there are.
bool start_thread(std::vector<std::jthread>& threads, const std::function<void()>& body);

/// Calls work() as errno_of does, which needs no memory to call it.
int errno_of_function(const std::function<int()>& work) noexcept;

/// Calls work(), which returns 0 or an errno, and returns the same; ENOMEM if it throws
/// std::bad_alloc, and any other error ends the process. For what must go on while an error
/// unwinds.
template <class Work>
int errno_of(const Work& work) noexcept {
  return errno_of_function(std::cref(work));
}

/// Whether `error` is one of memory (std::bad_alloc) or of threads (std::system_error); false for
/// nullptr. Such an error may come between any two statements: what was in the making is half done,
/// and must neither be used nor written.
bool is_shortage(const std::exception_ptr& error) noexcept;

/// Whether what was in the making when `error` was thrown may be half done, and must neither be
/// used nor written: is_shortage(), or Interrupted, which comes between any two steps; false for
/// nullptr.
bool is_unfinished(const std::exception_ptr& error) noexcept;

}  // namespace masque
