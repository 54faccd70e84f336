#include "kernel/parallel.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"

namespace masque::test {
namespace {

struct Threads {
  explicit Threads(int count) { kernel::set_threads(count); }
  ~Threads() { kernel::set_threads(0); }
};

TEST_CASE("runs of ranges make up the whole, each element once") {
  for (const int count : {1, 2, 5}) {
    const Threads threads(count);
    for (const Index n : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
      kernel::parallel_ranges(n, 1, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const auto& times : seen) CHECK(times == 1);
    }
  }
}

TEST_CASE("many small jobs one after the other") {
  const Threads threads(4);
  Index total = 0;
  for (Index job = 0; job < 20000; ++job) {
    std::atomic<Index> sum{0};
    const Index count = 2 + job % 5;
    kernel::parallel_ranges(count, 1, [&](Index begin, Index end) { sum += end - begin; });
    total += sum - count;
  }
  CHECK(total == 0);
}

TEST_CASE("jobs of several threads at once are each done whole") {
  const Threads threads(3);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> callers;
    callers.reserve(4);
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&] {
        for (int job = 0; job < 2000; ++job) {
          std::atomic<Index> sum{0};
          kernel::parallel_ranges(9, 1, [&](Index begin, Index end) { sum += end - begin; });
          if (sum != 9) ++wrong;
        }
      });
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("items run once each, and inside them everything is serial") {
  const Threads threads(3);
  CHECK(kernel::threads() == 3);
  std::vector<std::atomic<int>> seen(50);
  std::atomic<int> parallel_inside{0};
  kernel::parallel_items(50, [&](Index i) {
    ++seen[static_cast<std::size_t>(i)];
    if (kernel::threads() != 1) ++parallel_inside;
    Index whole = 0;
    kernel::parallel_ranges(10, 1, [&](Index begin, Index end) { whole += end - begin; });
    if (whole != 10) ++parallel_inside;
  });
  for (const auto& times : seen) CHECK(times == 1);
  CHECK(parallel_inside == 0);
}

TEST_CASE("the first exception stops the items and comes back") {
  for (const int count : {1, 3}) {
    const Threads threads(count);
    std::atomic<int> done{0};
    const auto run = [&] {
      kernel::parallel_items(100000, [&](Index i) {
        if (i == 5) throw InputError("five");
        ++done;
      });
    };
    CHECK(message_of(run) == "five");
    CHECK(done < 99999);
  }
}

TEST_CASE("an exception in a range comes back once all ranges are done, and the threads go on") {
  for (const int count : {1, 4}) {
    const Threads threads(count);
    for (int job = 0; job < 200; ++job) {
      std::atomic<Index> done{0};
      const auto run = [&] {
        kernel::parallel_ranges(100, 1, [&](Index begin, Index end) {
          if (begin <= 50 && 50 < end) throw InputError("range");
          done += end - begin;
        });
      };
      CHECK(message_of(run) == "range");
      CHECK(done < 100);
      CHECK(kernel::threads() == count);  // not inside of a job any more
    }
  }
}

}  // namespace
}  // namespace masque::test
