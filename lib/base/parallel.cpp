#include "base/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/interrupt.hpp"

namespace masque {

int default_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_for(Index count, int threads, const std::function<void(Index)>& work) {
  if (threads <= 0) threads = default_threads();
  std::atomic<Index> next{0};
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&] {
    try {
      for (Index i = next++; i < count; i = next++) {
        throw_if_interrupted();
        work(i);
      }
    } catch (...) {  // rethrown by the caller's thread below
      next = count;
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  const Index extra = std::min<Index>(threads, count) - 1;
  {
    std::vector<std::jthread> pool;
    for (Index i = 0; i < extra; ++i) pool.emplace_back(run);
    run();
  }
  if (first) std::rethrow_exception(first);
}

std::exception_ptr caught(const std::function<void()>& work) {
  try {
    work();
    return nullptr;
  } catch (...) {  // rethrown by the caller
    return std::current_exception();
  }
}

std::optional<std::string> input_error_message(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const InputError& error) {  // one record's, which the caller counts
    return error.message();
  }
}

std::optional<std::string> usage_problem_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const UsageError& error) {  // of a file, which the caller names
    return error.message();
  }
}

}  // namespace masque
