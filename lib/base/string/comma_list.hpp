// Lists, counts and limits in messages: "bert, gpt2, xlnet", "2 lines".
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"

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

/// Returns `items`, texts, as "a, b or c".
template <class Range>
std::string or_list(const Range& items) {
  std::string list;
  std::size_t left = std::size(items);
  for (const auto& item : items) {
    --left;
    list += item;
    list += left > 1 ? ", " : left == 1 ? " or " : "";
  }
  return list;
}

/// A note that only the `first` of `all` parts of `source` are read: "text: the first 5 of 32
/// sequences are evaluated; a larger FIELD reads more". `what` is "sequences are evaluated"; FIELD
/// is the field `limit`.
inline std::string limit_note(std::string_view source, std::integral auto first,
                              std::integral auto all, std::string_view what,
                              std::string_view limit) {
  return fmt::format("{}: the first {} of {} {}; a larger {} reads more", source, first, all, what,
                     field(limit));
}

/// "1 line", "2 lines": `count` of `what`, a word that takes an s.
std::string counted(std::integral auto count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace masque
