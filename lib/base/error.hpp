// Errors: two classes for users, one check for programmers, one for a signal.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace masque {

/// The name of a field in a message: of what a caller sets, and a user gives as an option. `name`
/// is that of the member, "mask_token". It is marked by control characters, so that who shows the
/// message can spell it: spell_fields(). Notes for people may name fields, too. Text from files
/// cannot forge the marks: escape() takes control characters.
std::string field(std::string_view name);

/// How a field is shown: "mask_token" → "mask-token".
using Spelling = std::function<std::string(std::string_view name)>;

/// Returns `message` with each of its fields as `spell` says it; without `spell` by their names.
std::string spell_fields(std::string_view message, const Spelling& spell = {});

/// Returns the names of the fields of `message`, in their order.
std::vector<std::string> fields_of(std::string_view message);

/// Base of everything that a user can cause. The message is one line: what was found, then what
/// was expected. what() has its fields by their names.
class Error : public std::runtime_error {
 public:
  /// `message` names fields as field() gives them.
  explicit Error(const std::string& message);
  /// The message with its fields marked: what another message is made of.
  const std::string& message() const { return *message_; }

 private:
  std::shared_ptr<const std::string> message_;  ///< shared: copies of an error do not throw
};

/// What the caller asks for is wrong, alone or together with the data. Exit code 2. A message that
/// begins with a field and a colon is about that field, and names others as advice.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A file or stream has wrong content, or cannot be opened, read or written. Exit code 3.
class InputError : public Error {
 public:
  using Error::Error;
  /// Makes the message "PATH: MESSAGE" of `path`, escaped, and `message`, as it is.
  InputError(std::string_view path, std::string_view message);
};

/// A signal asked the program to stop; nothing was left behind. Exit code 128 + signal.
class Interrupted : public Error {
 public:
  /// Makes the message "interrupted by signal N" for the number `signal`.
  explicit Interrupted(int signal);
  /// The number of the signal: SIGINT, SIGTERM or SIGHUP.
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// Returns, without throwing it, the InputError "PATH: ACTION: TEXT" of `path`, of what was done
/// (`action`) and of the system's text for the errno `code`.
InputError system_error(std::string_view path, std::string_view action, int code);

/// Throws std::logic_error that names the `condition`, the `file` and the `line` of a failed check:
/// a bug of ours, never reachable by input.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace masque

/// States what the code relies on. Active in every build; throws std::logic_error where `condition`
/// is false: exit code 4.
#define MASQUE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::masque::check_failed(#condition, __FILE__, __LINE__))
