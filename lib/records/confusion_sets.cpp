#include "records/confusion_sets.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/ascii.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "text/step/spaced_words.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::records {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

/// Whether a text can be a word between white space.
bool is_one_word(std::string_view text) {
  const std::vector<text::Stretch> words = text::spaced_words(text);
  return words.size() == 1 && words.front() == text::Stretch{0, text.size()};
}

/// A word without the punctuation around it.
text::Stretch core_of(std::string_view word) {
  text::Stretch core{0, word.size()};
  for (std::size_t next = 0; core.begin < core.end; core.begin = next) {
    if (!text::is(text::next_char(word, next), text::kPunctuation)) break;
  }
  for (std::size_t last = core.end; core.end > core.begin; core.end = last) {
    if (!text::is(text::previous_char(word, last), text::kPunctuation)) break;
  }
  return core;
}

}  // namespace

ConfusionSets ConfusionSets::read(const std::string& path) {
  return parse(read_text(path, kMostBytes), path);
}

ConfusionSets ConfusionSets::parse(std::string_view text, const std::string& name) {
  ConfusionSets sets;
  std::uint64_t number = 0;
  const auto refuse = [&](const std::string& message) {
    throw InputError(name, fmt::format("line {}: {}", number, message));
  };
  for_each_line(text, [&](std::string_view line) {
    throw_if_interrupted();
    ++number;
    line = without_return(line);
    if (line.empty()) return;
    if (!valid_utf8(line)) refuse("not UTF-8, expected words separated by tabs");
    const std::vector<std::string_view> words = split(line, '\t');
    if (words.size() < 2) {
      refuse(
          fmt::format("found '{}', expected at least two words separated by tabs", escape(line)));
    }
    const auto set = static_cast<std::uint32_t>(sets.sets_.size());
    sets.sets_.emplace_back().reserve(words.size());
    for (const std::string_view word : words) {
      if (!is_one_word(word)) {
        refuse(fmt::format("found '{}', expected words without white space", escape(word)));
      }
      auto& [kept, its_sets] = *sets.sets_of_.try_emplace(std::string(word)).first;
      if (!its_sets.empty() && its_sets.back() == set) {
        refuse(fmt::format("'{}' occurs twice, expected different words", escape(word)));
      }
      its_sets.push_back(set);
      sets.sets_.back().push_back(&kept);
    }
  });
  if (sets.sets_.empty())
    throw InputError(name, "no set, expected lines of words separated by tabs");
  return sets;
}

std::vector<std::string_view> ConfusionSets::others(std::string_view word) const {
  std::vector<std::string_view> out;
  const auto found = sets_of_.find(word);
  if (found == sets_of_.end()) return out;
  std::set<const std::string*> seen{&found->first};
  for (const std::uint32_t set : found->second) {
    for (const std::string* other : sets_[set]) {
      if (seen.insert(other).second) out.push_back(*other);
    }
  }
  return out;
}

std::vector<std::string> ConfusionSets::others_in_case(std::string_view word) const {
  std::vector<std::string_view> found = others(word);
  const bool capital = found.empty() && !word.empty() && is_ascii_capital(word[0]);
  if (capital) {
    std::string small(word);
    small[0] = ascii_small(small[0]);
    found = others(small);
  }
  std::vector<std::string> out(found.begin(), found.end());
  for (std::string& other : out) {
    if (capital) other[0] = ascii_capital(other[0]);
  }
  return out;
}

ConfusionSets::Confusion ConfusionSets::confusion_of(std::string_view word) const {
  Confusion out;
  for (const text::Stretch place : {text::Stretch{0, word.size()}, core_of(word)}) {
    if (place.begin == place.end) continue;
    out = {place, others_in_case(word.substr(place.begin, place.end - place.begin))};
    if (!out.others.empty()) break;
  }
  return out;
}

}  // namespace masque::records
