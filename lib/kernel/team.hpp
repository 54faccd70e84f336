// The threads of the kernels, which wait between jobs.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "base/types.hpp"

namespace masque::kernel {

/// Threads that do the parts of one job after the other.
///
/// A part is done by whoever is free first, the caller among them: a thread that the system does
/// not run just then holds nobody up. Threads wait for the next job busily for some microseconds
/// and then sleep, so that a machine with other work to do is not slowed down.
class Team {
 public:
  /// The team of the process: never destroyed. It grows when a job asks for more threads.
  static Team& of_process();

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Calls `work`(0) … work(`parts` − 1), each once, on up to `parts` threads, and returns when all
  /// are done. If the team is busy with the job of another thread, or the caller does a part of a
  /// job, the caller does it all; if the system has no more threads, those that there are do.
  /// Rethrows an exception of `work`, one of them if there are several; when the caller does all,
  /// the first one ends the job. From any thread.
  void run(Index parts, const std::function<void(Index)>& work);

  /// Whether the calling thread does a part of a job.
  static bool inside();

 private:
  void add_threads(int count);
  void serve();
  /// Does parts until none is left.
  void take_parts();

  std::mutex running_;  ///< held by the caller of a job
  std::mutex failing_;  ///< guards failed_
  std::exception_ptr failed_;
  int workers_ = 0;
  const std::function<void(Index)>* work_ = nullptr;
  std::atomic<std::uint64_t> open_{0};    ///< job · 2³² + its parts that nobody has taken
  std::atomic<std::uint32_t> undone_{0};  ///< parts of the job that are not done
  std::atomic<std::uint32_t> job_{0};     ///< number of the job
};

}  // namespace masque::kernel
