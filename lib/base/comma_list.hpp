// Lists in messages: "bert, gpt2, xlnet".
#pragma once

#include <functional>
#include <string>

namespace masque {

/// Returns `text` of each of the `items`, with ", " between. `text` is a function or a member of
/// the items.
template <class Range, class Text = std::identity>
std::string comma_list(const Range& items, const Text& text = {}) {
  std::string list;
  const char* separator = "";
  for (const auto& item : items) {
    list += separator;
    list += std::invoke(text, item);
    separator = ", ";
  }
  return list;
}

}  // namespace masque
