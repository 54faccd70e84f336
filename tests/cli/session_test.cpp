// What a session prints arrives, whatever a write takes at once.
#include "cli/session.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

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

}  // namespace masque::cli
