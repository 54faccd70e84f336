#include <algorithm>

#include "base/json/json.hpp"
#include "fuzz/mutators/mutator.hpp"

namespace masque::test {

namespace {

/// Every value of a document, and every name of a member.
struct Parts {
  std::vector<const JsonValue*> values;
  std::vector<std::string> names;
};

void collect(const JsonValue& value, Parts& parts) {
  parts.values.push_back(&value);
  for (const JsonMember& member : value.members) {
    parts.names.push_back(member.name);
    collect(member.value, parts);
  }
  for (const JsonValue& item : value.items) collect(item, parts);
}

std::string spelling(std::string_view text, const JsonValue& value) {
  return std::string(text.substr(value.begin, value.end - value.begin));
}

/// A value of another kind, or one at the edge of what a number or a text may be.
std::string other_value(Choices& choices) {
  static const std::vector<std::string> kValues = {"null",
                                                   "true",
                                                   "false",
                                                   "0",
                                                   "1",
                                                   "2",
                                                   "-1",
                                                   "0.5",
                                                   "-0",
                                                   "1e308",
                                                   "1e-320",
                                                   "1e999",
                                                   "255",
                                                   "65536",
                                                   "2147483647",
                                                   "2147483648",
                                                   "4294967296",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "18446744073709551615",
                                                   "18446744073709551616",
                                                   "[]",
                                                   "{}",
                                                   "\"\"",
                                                   "\"0\"",
                                                   "\"\\u0000\"",
                                                   "\"\\n\"",
                                                   "\"a b\"",
                                                   "\"../a\"",
                                                   "\"\\ud83d\\ude00\"",
                                                   "[0]",
                                                   "[1,2]",
                                                   "[[]]",
                                                   "[null]",
                                                   "{\"a\":1}"};
  return choices.of(kValues);
}

/// The members or items of a container, each as it will be written.
std::vector<std::string> children(std::string_view text, const JsonValue& value) {
  std::vector<std::string> out;
  for (const JsonMember& member : value.members)
    out.push_back(quote_json(member.name) + ":" + spelling(text, member.value));
  for (const JsonValue& item : value.items) out.push_back(spelling(text, item));
  return out;
}

/// A container with a child more, less, elsewhere or under another name.
std::string other_children(std::string_view text, const JsonValue& value, const Parts& parts,
                           Choices& choices) {
  const bool object = value.is(JsonKind::kObject);
  std::vector<std::string> list = children(text, value);
  std::string added =
      choices.one_in(3) ? other_value(choices) : spelling(text, *choices.of(parts.values));
  if (object) {
    const std::string name =
        parts.names.empty() || choices.one_in(8) ? "a" : choices.of(parts.names);
    added = quote_json(name) + ":" + added;
  }
  const std::size_t at = choices.below(list.size() + 1);
  const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
  if (at == list.size() || choices.one_in(3)) {
    list.insert(place, added);
  } else if (choices.one_in(3)) {
    list.erase(place);
  } else if (choices.one_in(2)) {
    std::swap(list[at], list[choices.below(list.size())]);
  } else {
    list[at] = added;
  }
  std::string out(1, object ? '{' : '[');
  for (std::size_t i = 0; i < list.size(); ++i) out += (i > 0 ? "," : "") + list[i];
  return out + (object ? '}' : ']');
}

}  // namespace

std::string mutate_json(std::string_view text, Choices& choices) {
  const auto parsed = read_json(text);
  const auto* root = std::get_if<JsonValue>(&parsed);
  if (root == nullptr) return {};
  Parts parts;
  collect(*root, parts);
  const JsonValue& value = *choices.of(parts.values);
  std::string changed;
  if ((value.is(JsonKind::kObject) || value.is(JsonKind::kArray)) && !choices.one_in(4)) {
    changed = other_children(text, value, parts, choices);
  } else if (choices.one_in(3)) {
    changed = other_value(choices);
  } else if (choices.one_in(2)) {
    changed = spelling(text, *choices.of(parts.values));
  } else if (value.is(JsonKind::kString)) {
    changed = quote_json(mutate_bytes(value.text));
  } else {
    changed = mutate_bytes(spelling(text, value));
  }
  return std::string(text.substr(0, value.begin)) + changed + std::string(text.substr(value.end));
}

}  // namespace masque::test
