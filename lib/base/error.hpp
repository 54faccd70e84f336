// Errors: two classes for users, one check for programmers, one for a signal.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace masque {

/// Base of everything that a user can cause. The message is one line: what was found, then what
/// was expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line is wrong, alone or together with the data. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A file or stream has wrong content, or cannot be opened, read or written. Exit code 3.
class InputError : public Error {
 public:
  using Error::Error;
  /// "path: message", the path printed safely.
  InputError(std::string_view path, std::string_view message);
};

/// A signal asked the program to stop; nothing was left behind. Exit code 128 + signal.
class Interrupted : public Error {
 public:
  explicit Interrupted(int signal);
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// InputError "path: action: strerror(code)".
InputError system_error(std::string_view path, std::string_view action, int code);

/// Throws std::logic_error: a bug of ours, never reachable by input.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace masque

/// States what the code relies on. Active in every build; a failure is exit code 4.
#define MASQUE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::masque::check_failed(#condition, __FILE__, __LINE__))
