// A named mask with its arguments, as written in an expression.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace masque::mask {

/// An argument as it was written.
struct MaskArgument {
  std::string name;   ///< empty: by position
  std::string value;  ///< unquoted
  bool quoted = false;
  std::size_t column = 0;

  bool operator==(const MaskArgument& other) const {
    return name == other.name && value == other.value;
  }
};

/// What an expression calls: `window(3)`.
struct NamedMask {
  std::string name;
  std::vector<MaskArgument> arguments;
  std::size_t column = 0;  ///< where the name begins in the expression, from 1; 0: unknown
};

}  // namespace masque::mask
