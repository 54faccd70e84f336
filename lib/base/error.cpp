#include "base/error.hpp"

#include <cstring>

#include <fmt/format.h>

#include "base/escape.hpp"

namespace masque {

InputError::InputError(std::string_view path, std::string_view message)
    : Error(fmt::format("{}: {}", escape(path), message)) {}

Interrupted::Interrupted(int signal)
    : Error(fmt::format("interrupted by signal {}", signal)), signal_(signal) {}

InputError system_error(std::string_view path, std::string_view action, int code) {
  return InputError(path, fmt::format("{}: {}", action, std::strerror(code)));
}

void check_failed(const char* condition, const char* file, int line) {
  throw std::logic_error(fmt::format("check failed: {} ({}:{})", condition, file, line));
}

}  // namespace masque
