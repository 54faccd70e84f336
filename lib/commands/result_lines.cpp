#include "commands/result_lines.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/json_writer.hpp"
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

namespace {

/// 'with "a":1' of what `some` have and the `others` do not, 'without b' of what only these have.
std::string own_members(const ProvenanceMembers& some, const ProvenanceMembers& others) {
  ProvenanceMembers own;
  std::string without;
  for (const auto& member : some) {
    if (std::ranges::find(others, member) == others.end()) own.push_back(member);
  }
  for (const auto& [name, value] : others) {
    if (std::ranges::find(some, name, [](const auto& m) { return m.first; }) == some.end())
      without += fmt::format("{}{}", without.empty() ? "" : ", ", escape(name));
  }
  std::string text = own.empty() ? "" : "with " + provenance_text(own);
  if (!without.empty()) text += (own.empty() ? "without " : " and without ") + without;
  return text;
}

constexpr std::string_view kLineDigest = ",\"xxh3\":\"";

/// The object of a line of with_line_digest(); another line as it is. Throws InputError for a line
/// that was changed since.
std::string without_line_digest(std::string_view line) {
  const std::size_t begin = line.rfind(kLineDigest);
  if (begin == std::string_view::npos) return std::string(line);
  std::string object = fmt::format("{}}}", line.substr(0, begin));
  if (with_line_digest(object) != line)
    throw InputError("was changed since it was written: it does not have the digest xxh3");
  return object;
}

}  // namespace

ProvenanceMembers provenance_of(const JsonValue& root, std::span<const std::string_view> results) {
  ProvenanceMembers members;
  for (const auto& [name, begin, value] : root.members) {
    if (std::ranges::find(results, name) != results.end()) continue;
    if (value.is(JsonKind::kArray) || value.is(JsonKind::kObject))
      throw InputError(fmt::format("{}: this kind of result cannot be merged", escape(name)));
    members.emplace_back(name, value.is(JsonKind::kString) ? quote_json(value.text) : value.text);
  }
  return members;
}

std::string provenance_text(const ProvenanceMembers& members) {
  std::string out;
  JsonWriter json(out);
  for (const auto& [name, value] : members) json.raw_member(name, value);
  return out;
}

kernel::Precision precision_of(const ProvenanceMembers& members) {
  for (const auto& [name, precision] : kernel::precision_names()) {
    const std::pair<std::string, std::string> member{"precision", quote_json(name)};
    if (std::ranges::find(members, member) != members.end()) return precision;
  }
  return kernel::Precision::kF32;
}

void check_provenance(std::string_view what, const ProvenanceMembers& found,
                      const ProvenanceMembers& expected) {
  if (std::ranges::is_permutation(found, expected)) return;
  throw InputError(fmt::format("{} {}, expected {} {} as in the parts before", what,
                               own_members(found, expected), what, own_members(expected, found)));
}

std::string with_line_digest(std::string_view object) {
  MASQUE_CHECK(object.ends_with('}'));
  return fmt::format("{}{}{}\"}}", object.substr(0, object.size() - 1), kLineDigest,
                     xxh3_of(as_bytes(object)));
}

void for_each_result(std::string_view text, const std::string& path,
                     const std::function<void(const JsonValue& root)>& use) {
  std::uint64_t number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++number;
    if (line.empty()) return;
    const auto problem = input_error_message([&] {
      const std::string object = without_line_digest(line);
      const auto parsed = read_json(object);
      if (const auto* error = std::get_if<JsonError>(&parsed))
        throw InputError(fmt::format("byte {}: {}", error->offset, error->message));
      use(std::get<JsonValue>(parsed));
    });
    if (problem) throw InputError(path, fmt::format("line {}: {}", number, *problem));
  });
}

}  // namespace masque::commands
