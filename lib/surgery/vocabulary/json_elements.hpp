// Members and items of JSON documents, edited in the style in which they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/text_splice.hpp"

namespace masque::surgery {

/// Gives an object or array of `text` these elements (members with their keys, or items, as JSON).
/// Elements that are equal to the one in their place stay as they are, what is added comes after
/// the last one and is spaced like it. Cost O(bytes of the list).
void set_elements(const std::string& text, const JsonValue& list,
                  const std::vector<std::string>& wanted, TextSplice& splice);

/// The text of a value.
std::string text_of(const std::string& text, const JsonValue& value);
/// The text of a member, with another key or value if they are given.
std::string member_text(const std::string& text, const JsonMember& member, std::string_view name,
                        std::string_view value);
/// A new member of an object, spaced like its last one.
std::string new_member(const std::string& text, const JsonValue& object, std::string_view name,
                       std::string_view value);

}  // namespace masque::surgery
