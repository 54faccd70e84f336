// A second process, for locks, signals and kills.
#pragma once

#include <sys/types.h>

#include <functional>

namespace masque::test {

/// A forked process that runs `work` and ends with the code it returns (255 if it throws). Killed
/// if it still runs when this object goes away.
class Child {
 public:
  /// Returns after the child has called the function it is given, or has ended.
  explicit Child(const std::function<int(const std::function<void()>& ready)>& work);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// Waits for the end: the exit code, or 128 + signal.
  int wait();
  void kill(int signal);

 private:
  pid_t pid_ = -1;
};

}  // namespace masque::test
