// A stream of items through several threads, and out again in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread/parallel.hpp"
#include "base/thread/shortage.hpp"

namespace masque {

/// The steps of ordered_work.
template <class Item>
struct OrderedSteps {
  /// Fills an item that may hold an earlier one; false at the end.
  std::function<bool(Item&)> read;
  /// Whether read() would not wait; what is finished is written before it does.
  std::function<bool()> ready = [] { return true; };
  /// Called on any thread; `worker` (from 0) differs between calls that run at the same time.
  std::function<void(Item&, int worker)> work;
  /// Called in order, on the caller's thread.
  std::function<void(Item&)> write;
};

/// Reads items, works on them with `threads` threads (≤ 0: default_threads()), and writes them in
/// the order of reading, as `steps` say. Holds a few items per thread. An item whose work throws is
/// still written, unless by is_unfinished() it may be half done; then the error is rethrown and
/// nothing after it is written. An error of read() is rethrown when all items before it are
/// written: output does not depend on the number of threads.
template <class Item>
void ordered_work(int threads, const OrderedSteps<Item>& steps);

namespace ordered_work_detail {

/// The items between reading and writing, two for each thread and two more, and the threads that
/// work on them.
template <class Item>
class Ring {
 public:
  /// Starts up to `threads` threads, as many as the system gives. `steps` outlive the ring.
  Ring(int threads, const OrderedSteps<Item>& steps)
      : steps_(steps), slots_(static_cast<std::size_t>(threads) * 2 + 2) {
    for (int i = 0; i < threads; ++i) {
      if (!start_thread(pool_, [this, i] { serve(i); })) break;
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
  }

  /// Whether the system gave it no thread: run() would wait for ever.
  bool empty() const { return pool_.empty(); }

  /// Reads, and writes in order, on the caller's thread until the end; rethrows errors as
  /// ordered_work says. Called once.
  void run() {
    std::exception_ptr failed;
    for (;;) {
      if (read_ - written_ == slots_.size()) write_one();
      while (written_ < read_ && (done(written_) || !steps_.ready())) write_one();
      try {
        if (!steps_.read(slot(read_).item)) break;
      } catch (...) {  // rethrown below, after what was read before
        failed = std::current_exception();
        break;
      }
      {
        const std::lock_guard lock(mutex_);
        slot(read_).done = false;
        ++read_;
      }
      changed_.notify_all();
    }
    while (written_ < read_) write_one();
    if (failed) std::rethrow_exception(failed);
  }

 private:
  struct Slot {
    Item item;
    bool done = false;
    std::exception_ptr error;
  };

  Slot& slot(std::uint64_t number) { return slots_[number % slots_.size()]; }

  bool done(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return slot(number).done;
  }

  void write_one() {
    Slot& next = slot(written_);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return next.done; });
    }
    ++written_;
    if (!is_unfinished(next.error)) steps_.write(next.item);
    if (next.error) std::rethrow_exception(next.error);
  }

  void serve(int worker) {
    for (;;) {
      Slot* mine = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || started_ < read_; });
        if (stop_) return;
        mine = &slot(started_++);
      }
      try {
        steps_.work(mine->item, worker);
      } catch (...) {  // rethrown when its turn to be written comes
        mine->error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        mine->done = true;
      }
      changed_.notify_all();
    }
  }

  const OrderedSteps<Item>& steps_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t read_ = 0;     ///< items read; guarded for the workers
  std::uint64_t started_ = 0;  ///< items that a worker has taken; guarded
  std::uint64_t written_ = 0;  ///< only the caller's thread looks at it
  bool stop_ = false;
  std::vector<std::jthread> pool_;  ///< last: ends before the rest goes away
};

}  // namespace ordered_work_detail

template <class Item>
void ordered_work(int threads, const OrderedSteps<Item>& steps) {
  if (threads <= 0) threads = default_threads();
  if (threads > 1) {
    ordered_work_detail::Ring<Item> ring(threads, steps);
    if (!ring.empty()) return ring.run();
  }
  Item item;
  while (steps.read(item)) {
    std::exception_ptr failed;
    try {
      steps.work(item, 0);
    } catch (...) {  // rethrown below
      failed = std::current_exception();
    }
    if (!is_unfinished(failed)) steps.write(item);
    if (failed) std::rethrow_exception(failed);
  }
}

}  // namespace masque
