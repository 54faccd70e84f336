// Errors that people make in text: typing errors, and words mistaken for others.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/string/name_table.hpp"
#include "records/confusion_sets.hpp"
#include "records/corruption.hpp"

namespace masque::records {

// Which letters lie next to each other on a keyboard.

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

// Errors.

/// What make_noise does.
struct NoiseOptions {
  double rate = 0.15;  ///< probability of each word to get an error
  /// Weights of the kinds, in the order of WordErrorKind, among those that a word can have.
  std::array<double, kWordErrorKinds> mix{1, 1, 1, 1, 0};
  KeyboardLayout keyboard = KeyboardLayout::kQwerty;    ///< of typing and insertion
  std::shared_ptr<const ConfusionSets> confusion = {};  ///< of confusion; nullptr: none
  bool pairs = false;                                   ///< texts are printed by append_pair()
  std::uint64_t seed = 0;                               ///< the same seed draws the same
};

/// Makes errors, as `options` say, in records that are text (`noisy`): a word of white space gets
/// one or none. A word that can have none of the kinds with a weight stays as it is. Characters are
/// code points.
///
/// typing      a letter becomes one that touches its key; only letters of the keyboard
/// insertion   a character comes twice, or a letter is followed by one that touches its key
/// deletion    a character is lost, of a word with two or more
/// swap        two neighbouring characters that differ change places
/// confusion   another word of the sets that the word is in: as it stands, else without the
///             punctuation around it; a word that begins with A to Z also in lower case; the
///             replacement is then capitalised
///
/// Throws UsageError for a rate that is not from 0 to 1, for weights that are below 0 or all 0, and
/// if one of confusion sets and their weight is given without the other. apply() throws InputError
/// for a record that has fields of ids, `original_text` or `errors`, and with `pairs` for a text
/// with a tab or an end of line.
std::unique_ptr<Corruption> make_noise(const NoiseOptions& options);

/// Appends the text of `record` with errors, a tab, the original and a line feed to `out`.
void append_pair(const Record& record, std::string& out);

}  // namespace masque::records
