// Sets of words that are mistaken for each other: there, their, they're.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/step/pattern.hpp"

namespace masque::records {

/// Confusion sets. A word may be in several. Immutable, thread-safe.
class ConfusionSets {
 public:
  ConfusionSets(const ConfusionSets&) = delete;  // sets point to words
  ConfusionSets& operator=(const ConfusionSets&) = delete;
  ConfusionSets(ConfusionSets&&) = default;
  ConfusionSets& operator=(ConfusionSets&&) = default;

  /// Reads the file at `path`, of at most 1 GiB, as parse() does.
  static ConfusionSets read(const std::string& path);
  /// Each line of `text` is a set: at least two words separated by tabs, all different, without
  /// white space. Empty lines are skipped. Throws InputError "`name`: line N: …", also for a text
  /// without a set.
  static ConfusionSets parse(std::string_view text, const std::string& name);

  /// The words of all sets that `word` is in, without itself, each once, in the order of the file;
  /// none for a word of no set. Views into this object. Cost: the words of these sets.
  std::vector<std::string_view> others(std::string_view word) const;

  /// The same as copies, but a `word` of no set that begins with A to Z is looked up with a small
  /// letter in its place, and the others then begin with a capital.
  std::vector<std::string> others_in_case(std::string_view word) const;

  /// What a word between white space may be mistaken for.
  struct Confusion {
    text::Stretch place;              ///< bytes of the word that the others stand for
    std::vector<std::string> others;  ///< none: no set has the word
  };
  /// What `word`, between white space, may be mistaken for: others_in_case() of the whole word, or
  /// else of the word without the punctuation around it.
  Confusion confusion_of(std::string_view word) const;

  /// Every word once, with the numbers of its sets, from 0 and ascending. Valid as long as this.
  const std::map<std::string, std::vector<std::uint32_t>, std::less<>>& words() const {
    return sets_of_;
  }

 private:
  ConfusionSets() = default;

  std::map<std::string, std::vector<std::uint32_t>, std::less<>> sets_of_;
  std::vector<std::vector<const std::string*>> sets_;  ///< words as sets_of_ holds them
};

}  // namespace masque::records
