#include "commands/provenance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/input/line_filter.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"

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

evaluate::Moments ResultReader::moments(const JsonValue& root) const {
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

/// A digest of what a run has read.
struct PartContent {
  std::string_view name;     ///< of the member
  std::string_view problem;  ///< what is said if it is another one
};

constexpr std::array<PartContent, 5> kPartContents{{
    {kInputDigest, "the text differs from that of the parts before"},
    {kWeightsDigest, "the weights differ from those of the parts before"},
    {kConfigDigest, "the config of the model differs from that of the parts before"},
    {kMaskDigest, "the cells of the mask differ from those of the parts before"},
    {kTokenizerDigest, "the tokenizer differs from that of the parts before"},
}};

const std::string* value_of(const ProvenanceMembers& members, std::string_view name) {
  const auto found = std::ranges::find(members, name, [](const auto& m) { return m.first; });
  return found == members.end() ? nullptr : &found->second;
}

/// Throws InputError that names what `found`, of this part, and `expected`, of the parts before,
/// have read that is not the same by its digest.
void check_contents(const ProvenanceMembers& found, const ProvenanceMembers& expected) {
  for (const PartContent& content : kPartContents) {
    const std::string* own = value_of(found, content.name);
    const std::string* before = value_of(expected, content.name);
    const bool same = own == nullptr || before == nullptr ? own == before : *own == *before;
    if (!same) throw InputError(std::string(content.problem));
  }
}

constexpr std::string_view kLineNumber = ",\"line\":\"";
constexpr std::string_view kLineDigest = ",\"xxh3\":\"";

/// `object` with its place `line` of `count` in a part, without the digest and the closing brace.
std::string numbered_line(std::string_view object, std::uint64_t line, std::uint64_t count) {
  MASQUE_CHECK(object.ends_with('}'));
  return fmt::format("{}{}{}/{}\"", object.substr(0, object.size() - 1), kLineNumber, line, count);
}

/// The digest of a line `numbered` of a part, where that of the line before it is `before`, or
/// empty.
std::string part_line_digest(std::string_view before, std::string_view numbered) {
  return xxh3_of(as_bytes(fmt::format("{}{}", before, numbered)));
}

/// What is wrong with a line of a part that lacks its place or digest.
std::string no_place() {
  return fmt::format(
      "a line of a part by {} without its place and digest (line, xxh3): written by an earlier "
      "version, or cut off; make the part again",
      field("shard"));
}

/// Follows the lines of parts, one part behind the other.
class PartLines {
 public:
  /// The object of a `line`, without its place and digest; a line that has none as it is. Throws
  /// InputError for a line that was changed since, or does not follow the one before it.
  std::string next(std::string_view line) {
    numbered_ = false;
    const std::size_t digest = line.rfind(kLineDigest);
    const std::string_view numbered = line.substr(0, digest);
    const std::size_t number = numbered.rfind(kLineNumber);
    if (digest == std::string_view::npos || number == std::string_view::npos) {
      if (missing() == 0 && digest == std::string_view::npos) return std::string(line);
      throw InputError(fmt::format("{} (expected {})", no_place(), expected()));
    }
    std::string_view place = numbered.substr(number + kLineNumber.size());
    place.remove_suffix(place.ends_with('"') ? 1 : 0);
    const std::size_t slash = place.find('/');
    const auto own = parse_number<std::uint64_t>(place.substr(0, slash));
    const auto count = slash == std::string_view::npos
                           ? std::nullopt
                           : parse_number<std::uint64_t>(place.substr(slash + 1));
    const bool follows = own && count && *own <= *count &&
                         (missing() == 0 ? *own == 1 : *own == line_ + 1 && *count == count_);
    if (!follows) {
      throw InputError(fmt::format("line {} of a part, expected {}", escape(place), expected()));
    }
    const std::string now = part_line_digest(*own == 1 ? "" : digest_, numbered);
    std::string object = fmt::format("{}}}", numbered.substr(0, number));
    if (line != fmt::format("{}{}{}\"}}", numbered_line(object, *own, *count), kLineDigest, now)) {
      throw InputError(
          "was changed since it was written, or is of another run: it does not have the digest "
          "xxh3");
    }
    line_ = *own;
    count_ = *count;
    digest_ = now;
    numbered_ = true;
    return object;
  }

  /// Whether the last line was one of a part.
  bool numbered() const { return numbered_; }
  /// Lines of the part that are still to come.
  std::uint64_t missing() const { return count_ - line_; }

 private:
  std::string expected() const {
    return missing() == 0
               ? fmt::format("the first line of a part, as {} printed it", field("shard"))
               : fmt::format("line {}/{} of the part", line_ + 1, count_);
  }

  std::uint64_t line_ = 0;   ///< the last one
  std::uint64_t count_ = 0;  ///< lines of its part
  std::string digest_;       ///< of the last line
  bool numbered_ = false;
};

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

ProvenanceMembers without_contents(const ProvenanceMembers& members) {
  ProvenanceMembers out = members;
  std::erase_if(out, [](const auto& member) {
    return std::ranges::find(kPartContents, member.first, &PartContent::name) !=
           kPartContents.end();
  });
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
  const ProvenanceMembers own = without_contents(found);
  const ProvenanceMembers before = without_contents(expected);
  if (!std::ranges::is_permutation(own, before)) {
    throw InputError(fmt::format("{} {}, expected {} {} as in the parts before", what,
                                 own_members(own, before), what, own_members(before, own)));
  }
  check_contents(found, expected);
}

std::string part_lines(std::span<const std::string> objects) {
  std::string out;
  std::string digest;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::string numbered = numbered_line(objects[i], i + 1, objects.size());
    digest = part_line_digest(digest, numbered);
    out += fmt::format("{}{}{}\"}}\n", numbered, kLineDigest, digest);
  }
  return out;
}

void for_each_result(std::string_view text, const std::string& path,
                     const std::function<void(const JsonValue& root)>& use) {
  std::uint64_t number = 0;
  PartLines part;
  for_each_line(text, [&](std::string_view line) {
    ++number;
    if (line.empty()) return;
    const auto problem = input_error_message([&] {
      const std::string object = part.next(line);
      const auto parsed = read_json(object);
      if (const auto* error = std::get_if<JsonError>(&parsed))
        throw InputError(fmt::format("byte {}: {}", error->offset, error->message));
      const auto& root = std::get<JsonValue>(parsed);
      if (!part.numbered() && root.find("shard") != nullptr) {
        throw InputError(no_place());
      }
      use(root);
    });
    if (problem) throw InputError(path, fmt::format("line {}: {}", number, *problem));
  });
  if (part.missing() > 0)
    throw InputError(
        path, fmt::format(
                  "{} missing at the end",
                  part.missing() == 1 ? "1 line is" : fmt::format("{} lines are", part.missing())));
}

}  // namespace masque::commands
