#include "support/child.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace masque::test {

Child::Child(const std::function<int(const std::function<void()>& ready)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::close(ends[0]);
    int code = 255;
    try {
      code = work([&] {
        if (::write(ends[1], "r", 1) != 1) ::_exit(254);
      });
    } catch (...) {  // 255 says so
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  char byte = 0;
  while (::read(ends[0], &byte, 1) < 0) {
  }
  ::close(ends[0]);
}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

int Child::wait() {
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Child::kill(int signal) { ::kill(pid_, signal); }

}  // namespace masque::test
