// What a session prints arrives, whatever a write takes at once.
#include "cli/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <doctest/doctest.h>

namespace masque::cli {

TEST_CASE("what a short write leaves is written with what follows") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) == 0);
  REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, 4096) == 4096);
  std::fflush(stdout);
  const int own = ::dup(STDOUT_FILENO);
  REQUIRE(::dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(10000 + i);
  std::string got;
  {
    Session session("test", false);
    session.print(text);
    std::array<char, 4096> part{};
    for (int i = 0; i < 4; ++i) {
      session.flush_quietly();
      const ssize_t n = ::read(ends[0], part.data(), part.size());
      if (n > 0) got.append(part.data(), static_cast<std::size_t>(n));
    }
  }
  ::dup2(own, STDOUT_FILENO);
  for (const int fd : {own, ends[0], ends[1]}) ::close(fd);
  CHECK(got == text);
}

TEST_CASE("progress that is drawn after a note is removed at the end") {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  REQUIRE(master >= 0);
  REQUIRE(::grantpt(master) == 0);
  REQUIRE(::unlockpt(master) == 0);
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  const int own = ::dup(STDERR_FILENO);
  ::setenv("TERM", "xterm", 1);
  REQUIRE(::dup2(terminal, STDERR_FILENO) == STDERR_FILENO);
  {
    Session session("test", false);
    const auto progress = session.progress("working");
    session.note("a note");
    std::this_thread::sleep_for(std::chrono::milliseconds(350));
    if (progress) progress(1, 2);
    session.clear_progress();
  }
  ::dup2(own, STDERR_FILENO);
  // A terminal passes on what it is given in parts, and later.
  std::string got;
  std::array<char, 4096> part{};
  for (struct pollfd ready = {master, POLLIN, 0}; ::poll(&ready, 1, 500) > 0;) {
    const ssize_t n = ::read(master, part.data(), part.size());
    if (n <= 0) break;
    got.append(part.data(), static_cast<std::size_t>(n));
  }
  for (const int fd : {own, terminal, master}) ::close(fd);
  CHECK(got.find("working 50 %") != std::string::npos);
  CHECK(got.ends_with("%\r\x1b[K"));
}

}  // namespace masque::cli
