// A named mask with its arguments, as written in an expression.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace masque::mask {

/// An argument as it was written.
struct MaskArgument {
  std::string name;        ///< empty: by position
  std::string value;       ///< unquoted
  bool quoted = false;     ///< the value stood between quotes
  std::size_t column = 0;  ///< where it begins in the expression, from 1; 0: unknown

  /// Compares names and values; quotes and places do not count.
  bool operator==(const MaskArgument& other) const {
    return name == other.name && value == other.value;
  }
};

/// What an expression calls: `window(3)`.
struct NamedMask {
  std::string name;                     ///< of a MaskKind, if check_mask finds no problem
  std::vector<MaskArgument> arguments;  ///< in the order in which they were written
  std::size_t column = 0;  ///< where the name begins in the expression, from 1; 0: unknown
};

/// Whether `text` needs no quotes as an argument: letters, digits and `_.-@+`, at least one.
inline bool is_mask_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '-' || c == '@' || c == '+';
  });
}

}  // namespace masque::mask
