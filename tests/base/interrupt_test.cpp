// Signals, each in a process of its own.
#include "base/thread/interrupt.hpp"

#include <csignal>
#include <functional>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "support/child.hpp"

namespace masque {
namespace {

using Ready = std::function<void()>;

/// Signal number of the Interrupted that `call` throws; 0 if none.
int interrupted_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Interrupted& interrupted) {
    return interrupted.signal();
  }
  return 0;
}

TEST_CASE("nothing is thrown before a signal arrived") {
  test::Child child([](const Ready&) {
    catch_interrupts();
    return interrupted_by(throw_if_interrupted);
  });
  CHECK(child.wait() == 0);
}

TEST_CASE("a noted signal is thrown with its number") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    test::Child child([signal](const Ready&) {
      catch_interrupts();
      std::raise(signal);
      return interrupted_by(throw_if_interrupted);
    });
    CHECK(child.wait() == signal);
  }
}

TEST_CASE("a signal stops a parallel loop") {
  test::Child child([](const Ready&) {
    catch_interrupts();
    return interrupted_by([] {
      parallel_for(1'000'000'000, 1, [](Index i) {
        if (i == 3) std::raise(SIGINT);
      });
    });
  });
  CHECK(child.wait() == SIGINT);
}

TEST_CASE("a signal that is put off is noted, and thrown afterwards") {
  test::Child child([](const Ready&) {
    catch_interrupts();
    int code = 0;
    {
      const InterruptsPutOff together;
      std::raise(SIGTERM);
      parallel_for(100, 1, [](Index) {});
      if (interrupted_by(throw_if_interrupted) != 0) code = 1;
      if (noted_interrupt() != SIGTERM) code = 2;
    }
    return code != 0 ? code : interrupted_by(throw_if_interrupted);
  });
  CHECK(child.wait() == SIGTERM);
}

TEST_CASE("a second signal of the same kind kills") {
  test::Child child([](const Ready&) {
    catch_interrupts();
    std::raise(SIGINT);
    std::raise(SIGINT);
    return 0;
  });
  CHECK(child.wait() == 128 + SIGINT);
}

TEST_CASE("during a long call of another library a signal kills") {
  test::Child child([](const Ready&) {
    catch_interrupts();
    { const SignalsKill over; }
    const SignalsKill call;
    std::raise(SIGTERM);
    return 0;
  });
  CHECK(child.wait() == 128 + SIGTERM);
  test::Child earlier([](const Ready&) {
    catch_interrupts();
    std::raise(SIGINT);
    return interrupted_by([] { const SignalsKill call; });
  });
  CHECK(earlier.wait() == SIGINT);
  test::Child later([](const Ready&) {
    catch_interrupts();
    {
      const InterruptsPutOff together;
      const SignalsKill call;
      std::raise(SIGINT);
    }
    return interrupted_by(throw_if_interrupted);
  });
  CHECK(later.wait() == SIGINT);
}

TEST_CASE("a signal that was ignored stays ignored") {
  test::Child child([](const Ready&) {
    std::signal(SIGHUP, SIG_IGN);
    catch_interrupts();
    std::raise(SIGHUP);
    std::raise(SIGHUP);
    return interrupted_by(throw_if_interrupted);
  });
  CHECK(child.wait() == 0);
}

}  // namespace
}  // namespace masque
