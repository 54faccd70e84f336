#include "base/error.hpp"

#include <cstring>

#include <fmt/format.h>

#include "base/escape.hpp"

namespace masque {

namespace {

constexpr char kFieldBegin = '\x1e';
constexpr char kFieldEnd = '\x1f';

/// Calls text() with what lies between fields, and name() with each field. A mark without its other
/// one is text.
template <class Text, class Name>
void each_part(std::string_view message, const Text& text, const Name& name) {
  while (!message.empty()) {
    const std::size_t end = message.find(kFieldEnd);
    const std::size_t begin =
        end == std::string_view::npos ? end : message.substr(0, end).rfind(kFieldBegin);
    if (begin == std::string_view::npos) {
      const std::size_t rest = end == std::string_view::npos ? message.size() : end + 1;
      text(message.substr(0, rest));
      message.remove_prefix(rest);
      continue;
    }
    text(message.substr(0, begin));
    name(message.substr(begin + 1, end - begin - 1));
    message.remove_prefix(end + 1);
  }
}

}  // namespace

std::string field(std::string_view name) {
  return fmt::format("{}{}{}", kFieldBegin, name, kFieldEnd);
}

std::string spell_fields(std::string_view message, const Spelling& spell) {
  std::string out;
  each_part(
      message, [&](std::string_view text) { out += text; },
      [&](std::string_view name) { out += spell ? spell(name) : std::string(name); });
  return out;
}

std::vector<std::string> fields_of(std::string_view message) {
  std::vector<std::string> names;
  each_part(
      message, [](std::string_view) {}, [&](std::string_view name) { names.emplace_back(name); });
  return names;
}

Error::Error(const std::string& message)
    : std::runtime_error(spell_fields(message)),
      message_(std::make_shared<const std::string>(message)) {}

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
