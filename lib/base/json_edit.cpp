// Edits of JSON texts: every byte that no edit names stays. New members are spaced as their
// neighbours are, which a JsonWriter does not know.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"

namespace masque {

std::string set_json_member(const std::string& text, const std::vector<std::string>& path,
                            std::string_view value) {
  const JsonValue root = parse_json_file(text, "JSON document");
  const JsonValue* at = &root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const JsonValue* next = at->find(path[i]);
    if (next != nullptr) {
      at = next;
      continue;
    }
    if (i + 1 != path.size() || !at->is(JsonKind::kObject)) {
      throw InputError("JSON document", fmt::format("no member \"{}\" found", escape(path[i])));
    }
    const std::string name = quote_json(path[i]);
    if (at->members.empty()) {
      return fmt::format("{}{}: {}{}", text.substr(0, at->begin + 1), name, value,
                         text.substr(at->begin + 1));
    }
    // Spaced like the last member: what stands before its key, and between its key and its value.
    const JsonMember& last = at->members.back();
    const std::size_t before =
        at->members.size() == 1 ? at->begin + 1
                                : text.find(',', at->members[at->members.size() - 2].value.end) + 1;
    const std::size_t colon = text.rfind(':', last.value.begin);
    std::size_t key_end = colon;
    while (text[key_end - 1] != '"') --key_end;
    return fmt::format(
        "{},{}{}{}{}{}", text.substr(0, last.value.end), text.substr(before, last.begin - before),
        name, text.substr(key_end, last.value.begin - key_end), value, text.substr(last.value.end));
  }
  return fmt::format("{}{}{}", text.substr(0, at->begin), value, text.substr(at->end));
}

std::string erase_json_member(const std::string& text, const std::vector<std::string>& path) {
  MASQUE_CHECK(!path.empty());
  const JsonValue root = parse_json_file(text, "JSON document");
  const JsonValue* at = &root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    at = at->find(path[i]);
    if (at == nullptr) return text;
  }
  const JsonValue* value = at->find(path.back());
  if (value == nullptr) return text;
  const std::vector<JsonMember>& members = at->members;
  std::size_t i = 0;
  while (&members[i].value != value) ++i;
  // With the comma before it, or the one after it where it is the first.
  if (i > 0) {
    return text.substr(0, members[i - 1].value.end) + text.substr(members[i].value.end);
  }
  if (members.size() == 1) return text.substr(0, at->begin + 1) + text.substr(at->end - 1);
  return text.substr(0, members[0].begin) + text.substr(members[1].begin);
}

}  // namespace masque
