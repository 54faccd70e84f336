// Any bytes as JSON: the naive parser agrees on verdict, values and positions; edits of what is
// accepted are accepted and change one member.
#include <string>

#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/naive_json.hpp"

namespace masque {
namespace {

using test::NaiveJson;

bool same(const JsonValue& a, const NaiveJson& b) {
  constexpr std::string_view kKinds = "nt0\"[{";
  if (kKinds[static_cast<std::size_t>(a.kind)] != b.kind || a.begin != b.begin || a.end != b.end ||
      a.text != b.text || a.members.size() != b.members.size() ||
      a.items.size() != b.items.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.members.size(); ++i) {
    if (a.members[i].name != b.members[i].name) return false;
    if (!same(a.members[i].value, b.members[i].value)) return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  return true;
}

/// Sets a member and looks at the result with the naive parser.
const char* wrong_edit(const std::string& text, const JsonValue& root, const std::string& name) {
  const std::string value = "[\"new\",1]";
  const std::string edited = set_json_member(text, {name}, value);
  const auto again = test::naive_json(edited, 65);
  if (!again) return "an edited text is no JSON";
  const bool added = root.find(name) == nullptr;
  if (again->members.size() != root.members.size() + (added ? 1 : 0)) {
    return "an edit lost or doubled members";
  }
  for (std::size_t i = 0; i < again->members.size(); ++i) {
    const auto& [key, now] = again->members[i];
    const std::string spelling = edited.substr(now.begin, now.end - now.begin);
    if (key == name) {
      if (spelling != value) return "an edit set another value";
      continue;
    }
    const JsonValue& before = root.members[i].value;
    if (key != root.members[i].name) return "an edit moved a member";
    if (spelling != text.substr(before.begin, before.end - before.begin)) {
      return "an edit changed another value";
    }
  }
  return nullptr;
}

const char* wrong(const std::string& text) {
  const auto ours = read_json(text);
  const auto naive = test::naive_json(text, 64);
  if (const auto* error = std::get_if<JsonError>(&ours)) {
    if (naive) return "refused, but not by the naive parser";
    if (error->offset > text.size() || error->message.empty()) return "an error without a place";
    return nullptr;
  }
  const auto& root = std::get<JsonValue>(ours);
  if (!naive) return "accepted, but not by the naive parser";
  if (!same(root, *naive)) return "another value or position";
  if (!root.is(JsonKind::kObject)) return nullptr;
  if (const char* found = wrong_edit(text, root, "masque \"new\"\n")) return found;
  if (root.members.empty()) return nullptr;
  return wrong_edit(text, root, root.members[root.members.size() / 2].name);
}

/// Escaped text has no control characters and is UTF-8; a quoted one reads back.
const char* wrong_text(const std::string& text) {
  const std::string shown = escape(text);
  bool utf8 = true;
  char32_t c = 0;
  for (std::string_view rest = text; !rest.empty() && utf8;) {
    const int length = decode_utf8(rest, c);
    utf8 = length > 0;
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  for (std::string_view rest = shown; !rest.empty();) {
    const int length = decode_utf8(rest, c);
    if (length == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0)) return "escaped text is not safe";
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  if (!utf8) return nullptr;
  const auto quoted = test::naive_json(quote_json(text), 1);
  return quoted && quoted->text == text ? nullptr : "a quoted text does not read back";
}

const char* wrong_document(std::string_view input) {
  const std::string text(input);
  const char* found = wrong(text);
  return found != nullptr ? found : wrong_text(text);
}

}  // namespace
}  // namespace masque

MASQUE_FUZZ_TARGET(masque::wrong_document)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_json)
