// Members and items of JSON documents, edited in the style in which they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/string/text_splice.hpp"

namespace masque::surgery {

/// Gives `list`, an object or array of `text`, the elements `wanted` (members with their keys, or
/// items, as JSON), by edits that it adds to `splice`. Elements that are equal to the one in their
/// place stay as they are, what is added comes after the last one and is spaced like it. Cost
/// O(bytes of the list).
void set_elements(const std::string& text, const JsonValue& list,
                  const std::vector<std::string>& wanted, TextSplice& splice);

/// The part of `text` that is `value`.
std::string text_of(const std::string& text, const JsonValue& value);
/// The part of `text` that is `member`, with the key `name` and with `value`, a JSON text, as its
/// value.
std::string member_text(const std::string& text, const JsonMember& member, std::string_view name,
                        std::string_view value);
/// A new member of `object` of `text`, with the key `name` and with `value`, a JSON text, as its
/// value: spaced like the last member.
std::string new_member(const std::string& text, const JsonValue& object, std::string_view name,
                       std::string_view value);

}  // namespace masque::surgery
