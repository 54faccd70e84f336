// Elements of a user's file are spliced into its text, spaced as their neighbours are: what is not
// changed keeps its bytes, which a JsonWriter has no part in.
#include "surgery/vocabulary/json_elements.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace masque::surgery {

namespace {

struct Place {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Place> elements_of(const JsonValue& list) {
  std::vector<Place> out;
  out.reserve(list.members.size() + list.items.size());
  for (const JsonMember& member : list.members) out.push_back({member.begin, member.value.end});
  for (const JsonValue& item : list.items) out.push_back({item.begin, item.end});
  return out;
}

/// One past the closing quote of a member's key.
std::size_t key_end(const std::string& text, const JsonMember& member) {
  std::size_t end = member.value.begin;
  while (text[end - 1] != '"') --end;
  return end;
}

}  // namespace

void set_elements(const std::string& text, const JsonValue& list,
                  const std::vector<std::string>& wanted, TextSplice& splice) {
  const std::vector<Place> old = elements_of(list);
  const std::size_t shared = std::min(old.size(), wanted.size());
  for (std::size_t i = 0; i < shared; ++i) {
    const std::string_view now(text.data() + old[i].begin, old[i].end - old[i].begin);
    if (now != wanted[i]) splice.replace(old[i].begin, old[i].end, wanted[i]);
  }
  if (wanted.size() < old.size()) {
    const std::size_t from = shared == 0 ? old[0].begin : old[shared - 1].end;
    splice.replace(from, old.back().end, "");
  }
  if (wanted.size() == shared) return;
  // Spaced like the last element: what stands before it.
  std::string gap;
  if (old.size() == 1) gap = text.substr(list.begin + 1, old[0].begin - list.begin - 1);
  if (old.size() > 1) {
    const std::size_t comma = text.find(',', old[old.size() - 2].end);
    gap = text.substr(comma + 1, old.back().begin - comma - 1);
  }
  std::string more;
  for (std::size_t i = shared; i < wanted.size(); ++i) {
    if (i > 0) more += old.empty() ? ", " : "," + gap;
    more += wanted[i];
  }
  if (old.empty()) {
    splice.replace(list.begin + 1, list.end - 1, std::move(more));
  } else {
    splice.replace(old.back().end, old.back().end, std::move(more));
  }
}

std::string text_of(const std::string& text, const JsonValue& value) {
  return text.substr(value.begin, value.end - value.begin);
}

std::string member_text(const std::string& text, const JsonMember& member, std::string_view name,
                        std::string_view value) {
  const std::size_t end = key_end(text, member);
  std::string out =
      name == member.name ? text.substr(member.begin, end - member.begin) : quote_json(name);
  out.append(text, end, member.value.begin - end);
  return out.append(value);
}

std::string new_member(const std::string& text, const JsonValue& object, std::string_view name,
                       std::string_view value) {
  std::string between = ": ";
  if (!object.members.empty()) {
    const JsonMember& last = object.members.back();
    const std::size_t end = key_end(text, last);
    between = text.substr(end, last.value.begin - end);
  }
  return fmt::format("{}{}{}", quote_json(name), between, value);
}

}  // namespace masque::surgery
