#include "commands/result_lines.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/line_filter.hpp"
#include "base/parallel.hpp"
#include "base/split.hpp"

namespace masque::commands {

const JsonValue& ResultReader::member(const JsonValue& root, std::string_view name,
                                      JsonKind kind) const {
  const JsonValue* value = root.find(name);
  if (value == nullptr || !value->is(kind))
    throw InputError(fmt::format("no {}, expected {}", name, expected_));
  return *value;
}

const std::string& ResultReader::text(const JsonValue& root, std::string_view name) const {
  return member(root, name, JsonKind::kString).text;
}

double ResultReader::number(const JsonValue& root, std::string_view name) const {
  const auto number = member(root, name, JsonKind::kNumber).number();
  if (!number || !std::isfinite(*number))
    throw InputError(fmt::format("{}: expected a finite number", name));
  return *number;
}

std::uint64_t ResultReader::count(const JsonValue& root, std::string_view name) const {
  const auto count = member(root, name, JsonKind::kNumber).integer();
  if (!count) throw InputError(fmt::format("{}: expected a whole number", name));
  return *count;
}

probe::Moments ResultReader::moments(const JsonValue& root) const {
  return {count(root, "n"), number(root, "mean"), number(root, "sum_squares")};
}

void for_each_result(std::string_view text, const std::string& path,
                     const std::function<void(const JsonValue& root)>& use) {
  std::uint64_t number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++number;
    if (line.empty()) return;
    const auto problem = input_error_message([&] {
      const auto parsed = read_json(line);
      if (const auto* error = std::get_if<JsonError>(&parsed))
        throw InputError(fmt::format("byte {}: {}", error->offset, error->message));
      use(std::get<JsonValue>(parsed));
    });
    if (problem) throw InputError(path, fmt::format("line {}: {}", number, *problem));
  });
}

}  // namespace masque::commands
