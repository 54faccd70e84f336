#include "base/thread/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/shortage.hpp"

namespace masque {

int default_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void SharedLoop::run() {
  const std::exception_ptr error = caught([this] {
    for (Index i = next_++; i < count_; i = next_++) {
      throw_if_interrupted();
      work_(i);
    }
  });
  if (!error) return;
  next_ = count_;
  const std::lock_guard lock(mutex_);
  if (!first_) first_ = error;
}

void SharedLoop::finish() const {
  if (first_) std::rethrow_exception(first_);
}

void parallel_for(Index count, int threads, const std::function<void(Index)>& work) {
  if (threads <= 0) threads = default_threads();
  SharedLoop loop(count, work);
  const Index extra = std::min<Index>(threads, count) - 1;
  {
    std::vector<std::jthread> others;
    for (Index i = 0; i < extra; ++i) {
      if (!start_thread(others, [&loop] { loop.run(); })) break;
    }
    loop.run();
  }
  loop.finish();
}

bool start_thread(std::vector<std::jthread>& threads, const std::function<void()>& body) {
  try {
    threads.emplace_back(body);
    return true;
  } catch (const std::system_error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

int errno_of_function(const std::function<int()>& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

bool is_shortage(const std::exception_ptr& error) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const std::system_error&) {
    return true;
  } catch (...) {  // the caller has it
    return false;
  }
}

bool is_unfinished(const std::exception_ptr& error) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted&) {
    return true;
  } catch (...) {  // the caller has it
    return is_shortage(error);
  }
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

std::optional<std::string> usage_error_message(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const UsageError& error) {  // of a file, which the caller names
    return error.message();
  }
}

}  // namespace masque
