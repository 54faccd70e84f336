#include "records/keyboard.hpp"

#include <array>

namespace masque::records {

namespace {

/// Rows from above, each half a key to the right of the one above it.
using Rows = std::array<std::u32string_view, 3>;

Rows rows_of(KeyboardLayout layout) {
  switch (layout) {
    case KeyboardLayout::kQwerty: return {U"qwertyuiop", U"asdfghjkl", U"zxcvbnm"};
    case KeyboardLayout::kQwertz: return {U"qwertzuiopü", U"asdfghjklöä", U"yxcvbnm"};
    case KeyboardLayout::kAzerty: return {U"azertyuiop", U"qsdfghjklm", U"wxcvbn"};
    case KeyboardLayout::kJcuken: break;
  }
  return {U"йцукенгшщзхъ", U"фывапролджэ", U"ячсмитьбю"};
}

/// Latin and Cyrillic letters of these rows have their capitals 32 code points before them.
char32_t capital(char32_t letter) { return letter - 32; }

constexpr std::array<std::pair<std::string_view, KeyboardLayout>, 4> kKeyboardNames{
    {{"qwerty", KeyboardLayout::kQwerty},
     {"qwertz", KeyboardLayout::kQwertz},
     {"azerty", KeyboardLayout::kAzerty},
     {"jcuken", KeyboardLayout::kJcuken}}};

}  // namespace

NameTable<KeyboardLayout> keyboard_names() { return kKeyboardNames; }

Keyboard::Keyboard(KeyboardLayout layout) {
  const Rows rows = rows_of(layout);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t k = 0; k < rows[r].size(); ++k) {
      std::u32string around;
      const auto add = [&](std::size_t row, std::size_t key) {
        if (row < rows.size() && key < rows[row].size()) around += rows[row][key];
      };
      // A key before the first one, or a row above the first one, wraps to a number that is none.
      add(r, k - 1);
      add(r, k + 1);
      add(r - 1, k);
      add(r - 1, k + 1);
      add(r + 1, k - 1);
      add(r + 1, k);
      std::u32string capitals;
      for (const char32_t letter : around) capitals += capital(letter);
      neighbours_[capital(rows[r][k])] = std::move(capitals);
      neighbours_[rows[r][k]] = std::move(around);
    }
  }
}

std::u32string_view Keyboard::neighbours(char32_t letter) const {
  const auto found = neighbours_.find(letter);
  return found == neighbours_.end() ? std::u32string_view() : found->second;
}

}  // namespace masque::records
