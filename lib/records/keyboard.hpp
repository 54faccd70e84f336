// Which letters lie next to each other on a keyboard.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/name_table.hpp"

namespace masque::records {

/// The three rows of letters of a keyboard; others than these have no neighbours.
enum class KeyboardLayout {
  kQwerty,  ///< English
  kQwertz,  ///< German
  kAzerty,  ///< French
  kJcuken,  ///< Russian
};

/// "qwerty", "qwertz", "azerty", "jcuken". The table is static.
NameTable<KeyboardLayout> keyboard_names();

/// The neighbours of the letters of a layout. Immutable, thread-safe.
class Keyboard {
 public:
  /// The letters of `layout`, small and capital.
  explicit Keyboard(KeyboardLayout layout);

  /// The letters on the keys that touch the key of `letter`, in its case: those left and right of
  /// it, then those of the row above and of the row below, from left to right. Empty for what is
  /// no letter of the layout. A view into this object.
  std::u32string_view neighbours(char32_t letter) const;

 private:
  std::map<char32_t, std::u32string> neighbours_;
};

}  // namespace masque::records
