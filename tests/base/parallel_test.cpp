// Every piece once, on any number of threads, and the first error out.
#include "base/thread/parallel.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "support/message.hpp"

namespace masque {
namespace {

TEST_CASE("every piece runs exactly once for any count and number of threads") {
  for (const Index count : {0, 1, 2, 7, 1000}) {
    for (const int threads : {-1, 0, 1, 2, 5, 64}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      parallel_for(count, threads, [&](Index i) { ++runs[static_cast<std::size_t>(i)]; });
      CAPTURE(count);
      CAPTURE(threads);
      for (const auto& times : runs) REQUIRE(times == 1);
    }
  }
}

TEST_CASE("one thread runs the pieces in order on the caller's thread") {
  std::vector<Index> order;
  bool elsewhere = false;
  const auto caller = std::this_thread::get_id();
  parallel_for(5, 1, [&](Index i) {
    order.push_back(i);
    elsewhere = elsewhere || std::this_thread::get_id() != caller;
  });
  CHECK(order == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK_FALSE(elsewhere);
}

TEST_CASE("two threads work at the same time") {
  // Each of the two pieces waits for the other to begin.
  std::atomic<int> begun{0};
  parallel_for(2, 2, [&](Index) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  CHECK(begun == 2);
}

TEST_CASE("an exception is rethrown and stops further pieces") {
  for (const int threads : {1, 4}) {
    std::atomic<int> runs{0};
    const std::string message = test::message_of<std::runtime_error>([&] {
      parallel_for(100'000, threads, [&](Index i) {
        ++runs;
        if (i > 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (i == 10) throw std::runtime_error("piece ten");
      });
    });
    CAPTURE(threads);
    CHECK(message == "piece ten");
    CHECK(runs >= 11);
    CHECK(runs < 100'000);
  }
}

TEST_CASE("of several exceptions one is rethrown after all threads have ended") {
  std::atomic<int> inside{0};
  const std::string message = test::message_of<std::runtime_error>([&] {
    parallel_for(8, 8, [&](Index) {
      ++inside;
      const struct Leave {
        std::atomic<int>& count;
        ~Leave() { --count; }
      } leave{inside};
      throw std::runtime_error("each");
    });
  });
  CHECK(message == "each");
  CHECK(inside == 0);
}

TEST_CASE("the default number of threads is at least one") { CHECK(default_threads() >= 1); }

}  // namespace
}  // namespace masque
