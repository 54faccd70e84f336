#include "kernel/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread/parallel.hpp"
#include "base/thread/shortage.hpp"
#include "base/types.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace masque::kernel {
namespace {

// The threads of the kernels, which wait between jobs.

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

thread_local bool t_inside = false;

/// The calling thread does parts of a job.
class Inside {
 public:
  Inside() = default;
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { t_inside = before_; }

 private:
  bool before_ = std::exchange(t_inside, true);
};

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Waits until `value` is no longer `old`: busily at first, since the next job of a model comes
/// within microseconds, then asleep.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  constexpr std::chrono::microseconds kBusy{100};
  constexpr int kSpins = 64;  // between readings of the clock
  const auto end = std::chrono::steady_clock::now() + kBusy;
  do {
    for (int i = 0; i < kSpins; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);
}

Team& Team::of_process() {
  // Its threads sleep until the process ends; there is no moment to join them.
  static Team& team = *new Team;
  return team;
}

bool Team::inside() { return t_inside; }

void Team::run(Index parts, const std::function<void(Index)>& work) {
  const std::unique_lock lock(running_, std::try_to_lock);
  if (parts < 2 || !lock.owns_lock() || t_inside) {
    const Inside inside;
    for (Index part = 0; part < parts; ++part) work(part);
    return;
  }
  const int count = static_cast<int>(parts);
  add_threads(count - 1 - workers_);
  work_ = &work;
  undone_.store(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
  const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  // Who takes a part sees what was written before.
  open_.store((std::uint64_t{job} << 32) | static_cast<std::uint64_t>(count),
              std::memory_order_release);
  job_.store(job, std::memory_order_release);
  if (count > workers_) {
    job_.notify_all();
  } else {
    for (int i = 1; i < count; ++i) job_.notify_one();
  }
  {
    const Inside inside;
    take_parts();
  }
  for (std::uint32_t left = undone_.load(std::memory_order_acquire); left > 0;
       left = undone_.load(std::memory_order_acquire)) {
    wait_while(undone_, left);
  }
  // All parts are done: no other thread reads it any more.
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

void Team::add_threads(int count) {
  for (int i = 0; i < count; ++i) {
    std::vector<std::jthread> added;
    if (!start_thread(added, [this] { serve(); })) return;
    added.back().detach();
    ++workers_;
  }
}

void Team::serve() {
  t_inside = true;
  for (std::uint32_t seen = job_.load(std::memory_order_acquire);;
       seen = job_.load(std::memory_order_acquire)) {
    take_parts();
    wait_while(job_, seen);
  }
}

void Team::take_parts() {
  std::uint64_t open = open_.load(std::memory_order_acquire);
  while ((open & 0xFFFFFFFFU) != 0) {
    // The job's number is compared, too: a part of a job that has ended is never taken.
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      continue;
    }
    const auto part = static_cast<Index>((open & 0xFFFFFFFFU) - 1);
    if (const std::exception_ptr error = caught([&] { (*work_)(part); })) {
      const std::lock_guard lock(failing_);
      failed_ = error;
    }
    if (undone_.fetch_sub(1, std::memory_order_acq_rel) == 1) undone_.notify_one();
    open = open_.load(std::memory_order_acquire);
  }
}

std::atomic<int> g_threads{0};

}  // namespace

void set_threads(int threads) { g_threads = std::max(threads, 0); }

int threads() {
  if (Team::inside()) return 1;
  const int chosen = g_threads.load(std::memory_order_relaxed);
  if (chosen > 0) return chosen;
  static const int kProcessors = default_threads();
  return kProcessors;
}

void parallel_ranges(Index count, Index grain, const std::function<void(Index, Index)>& work) {
  const Index parts = std::min<Index>(threads(), count / std::max<Index>(grain, 1));
  if (parts < 2) {
    if (count > 0) work(0, count);
    return;
  }
  Team::of_process().run(parts, [&](Index part) {
    const Index begin = count * part / parts, end = count * (part + 1) / parts;
    if (begin < end) work(begin, end);
  });
}

void parallel_items(Index count, const std::function<void(Index)>& work) {
  SharedLoop loop(count, work);
  const Index team = std::min<Index>(threads(), count);
  if (team < 2) {
    loop.run();
  } else {
    Team::of_process().run(team, [&loop](Index) { loop.run(); });
  }
  loop.finish();
}

}  // namespace masque::kernel
