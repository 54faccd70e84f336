// What every fuzz target is made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::test {

/// Takes an input that stands for several texts apart: all but the last end at a NUL.
class InputParts {
 public:
  explicit InputParts(std::string_view input) : rest_(input) {}

  /// Up to the next NUL, or what is left.
  std::string_view next() {
    const std::size_t end = std::min(rest_.find('\0'), rest_.size());
    const std::string_view part = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return part;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// What is wrong with a message for a user; nothing if it is one line that is safe to print.
inline std::string wrong_message(std::string_view message) {
  if (message.empty()) return "an error without a message";
  for (std::string_view rest = message; !rest.empty();) {
    char32_t c = 0;
    const int bytes = decode_utf8(rest, c);
    if (bytes == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0) || is_bidirectional_control(c))
      return "a message that is not safe to print: " + escape(message);
    rest.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return {};
}

/// Ends the program, as a sanitizer does.
[[noreturn]] inline void fail(std::string_view what) {
  std::fprintf(stderr, "wrong: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

inline void require(bool holds, std::string_view what) {
  if (!holds) fail(what);
}

/// Calls `use`, which reads what may be bad: InputError and UsageError are what bad input should
/// give, with a message that can be shown. Returns whether there was none. Others pass.
template <class F>
bool accepts(F use) {
  const auto check = [](const Error& error) {
    const std::string wrong = wrong_message(error.what());
    if (!wrong.empty()) fail(wrong);
    return false;
  };
  try {
    use();
    return true;
  } catch (const InputError& error) {
    return check(error);
  } catch (const UsageError& error) {
    return check(error);
  }
}

/// What the first byte of an input stands for.
struct Kind {
  char name;
  void (*use)(std::string_view rest);
};

/// For inputs of several kinds: accepts() what the first byte names, with the bytes after it.
inline void use_by_kind(std::string_view input, std::span<const Kind> kinds) {
  for (const Kind& kind : kinds)
    if (input.starts_with(kind.name)) accepts([&] { kind.use(input.substr(1)); });
}

/// The body of a target. `use` returns what is wrong, as a text or nullptr, or nothing at all.
template <class F>
int run_target(const std::uint8_t* data, std::size_t size, F use) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if constexpr (std::is_void_v<decltype(use(input))>) {
    use(input);
  } else if constexpr (std::is_same_v<decltype(use(input)), const char*>) {
    const char* wrong = use(input);
    if (wrong != nullptr) fail(wrong);
  } else {
    const std::string wrong = use(input);
    if (!wrong.empty()) fail(wrong);
  }
  return 0;
}

}  // namespace masque::test

/// Defines the function that the engine, or the replay, calls for every input.
#define MASQUE_FUZZ_TARGET(use)                                                       \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    return masque::test::run_target(data, size, use);                                 \
  }
