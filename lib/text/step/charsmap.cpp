#include "text/step/charsmap.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "text/step/rewriter.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

// Extended grapheme clusters.

using G = GraphemeClass;

bool is_control(G g) { return g == G::kControl || g == G::kCR || g == G::kLF; }

/// What the rules about longer contexts need to know of the cluster so far.
class Cluster {
 public:
  explicit Cluster(const CharProperties& first) { add(first); }

  /// Whether the next character belongs to the cluster.
  bool takes(const CharProperties& p) const {
    const G after = p.grapheme;
    if (last_ == G::kCR) return after == G::kLF;                        // GB3
    if (is_control(last_) || is_control(after)) return false;           // GB4, GB5
    if (joins_hangul(after)) return true;                               // GB6 to GB8
    if (after == G::kExtend || after == G::kZwj) return true;           // GB9
    if (after == G::kSpacingMark || last_ == G::kPrepend) return true;  // GB9a, GB9b
    if (conjunct_ == 2 && p.has(kConjunctConsonant)) return true;       // GB9c
    if (emoji_ == 2 && p.has(kPictographic)) return true;               // GB11
    return after == G::kRegionalIndicator && odd_indicators_;           // GB12, GB13
  }

  void add(const CharProperties& p) {
    const G g = p.grapheme;
    if (p.has(kConjunctConsonant)) {
      conjunct_ = 1;
    } else if (p.has(kConjunctLinker)) {
      conjunct_ = conjunct_ > 0 ? 2 : 0;
    } else if (!p.has(kConjunctExtend)) {
      conjunct_ = 0;
    }
    if (p.has(kPictographic)) {
      emoji_ = 1;
    } else if (g == G::kZwj) {
      emoji_ = emoji_ == 1 ? 2 : 0;
    } else if (g != G::kExtend || emoji_ == 2) {
      emoji_ = 0;
    }
    odd_indicators_ = g == G::kRegionalIndicator && !odd_indicators_;
    last_ = g;
  }

 private:
  bool joins_hangul(G after) const {
    switch (last_) {
      case G::kL: return after == G::kL || after == G::kV || after == G::kLV || after == G::kLVT;
      case G::kLV:
      case G::kV: return after == G::kV || after == G::kT;
      case G::kLVT:
      case G::kT: return after == G::kT;
      default: return false;
    }
  }

  G last_ = G::kOther;
  int conjunct_ = 0;  // 1: a consonant and extenders; 2: a linker among them
  int emoji_ = 0;     // 1: a pictograph and extenders; 2: and a joiner after them
  bool odd_indicators_ = false;
};

/// End of the extended grapheme cluster (UAX 29) that begins at byte `begin` of `text` (valid
/// UTF-8); begin < size.
std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  Cluster cluster(properties(next_char(text, end)));
  while (end < text.size()) {
    std::size_t next = end;
    const CharProperties& p = properties(next_char(text, next));
    if (!cluster.takes(p)) break;
    cluster.add(p);
    end = next;
  }
  return end;
}

// The table: a double-array trie, and replacements.

std::uint32_t label(std::uint32_t unit) { return unit & 0x800000FF; }
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
std::size_t offset(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & 0x200) >> 6);
}

/// Whether a character of UTF-8 goes on with this byte.
bool inside_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 4; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

struct Change {
  char32_t c;
  std::int64_t change;
};

/// `replacement` for `old`, counted as the reference counts: what is missing at the end is dropped
/// by the last character so far, even if that is one of an earlier replacement.
void replace(std::vector<Change>& changes, std::string_view old, std::string_view replacement) {
  for (std::size_t i = 0; i < replacement.size();)
    changes.push_back({next_char(replacement, i), 0});
  const auto more = static_cast<std::int64_t>(count_code_points(replacement)) -
                    static_cast<std::int64_t>(count_code_points(old));
  if (more < 0 && !changes.empty()) changes.back().change += more;
  const std::size_t size = changes.size();
  for (std::int64_t i = 1; i <= more; ++i) changes[size - static_cast<std::size_t>(i)].change = 1;
}

/// Longer replacements are refused: a small table must not turn a text into one of gigabytes.
constexpr std::size_t kMaxReplacement = 1000;

/// What is wrong with the table of strings; empty if nothing.
std::string_view examine(std::string_view strings) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < strings.size();) {
    char32_t c = 0;
    const int bytes = decode_utf8(strings.substr(i, 4), c);
    if (bytes == 0) return "a replacement is not UTF-8";
    length = c == 0 ? 0 : length + static_cast<std::size_t>(bytes);
    if (length > kMaxReplacement) return "a replacement of more than 1000 bytes";
    i += static_cast<std::size_t>(bytes);
  }
  return {};
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& path) {
  if (bytes.empty()) return;
  const std::size_t size = bytes.size() < 4 ? 0 : little_endian(bytes, 0);
  if (bytes.size() < 4 || size > bytes.size() - 4 || size == 0 || size % 4 != 0) {
    throw InputError(path, fmt::format("charsmap: a trie of {} bytes in {} bytes", size,
                                       bytes.size() < 4 ? 0 : bytes.size() - 4));
  }
  units_.reserve(size / 4);
  for (std::size_t i = 4; i < 4 + size; i += 4) units_.push_back(little_endian(bytes, i));
  strings_ = bytes.substr(4 + size);
  if (const std::string_view wrong = examine(strings_); !wrong.empty()) {
    throw InputError(path, fmt::format("charsmap: {}", wrong));
  }
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view text, bool first) const {
  std::optional<Match> found;
  if (units_.empty()) return found;
  std::size_t at = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (!first && i + 1 < text.size() && inside_character(text[i + 1])) continue;
    if (at >= units_.size()) break;
    const std::size_t begin = value(units_[at]);
    // A string begins on a character and ends at a NUL, or with the table.
    if (begin > strings_.size() || (begin < strings_.size() && inside_character(strings_[begin]))) {
      continue;
    }
    const std::size_t end = std::min(strings_.find('\0', begin), strings_.size());
    found = Match{i + 1, std::string_view(strings_).substr(begin, end - begin)};
    if (first) break;
  }
  return found;
}

void replace_graphemes(AlignedText& text, const Charsmap& charsmap) {
  const std::string_view old = text.text;
  std::vector<Change> changes;
  changes.reserve(old.size());
  bool changed = false;
  SparseLooks looks;
  const auto replaced = [&](std::string_view part) {
    const auto match = charsmap.shortest(part);
    if (match) replace(changes, part, match->replacement);
    changed |= match.has_value();
    return match.has_value();
  };
  for (std::size_t i = 0; i < old.size();) {
    looks.step();
    const std::size_t end = grapheme_end(old, i);
    // The whole cluster gives way to the replacement of its shortest prefix that has one.
    if (end - i < 6 && replaced(old.substr(i, end - i))) {
      i = end;
      continue;
    }
    while (i < end) {
      const std::size_t begin = i;
      const char32_t c = next_char(old, i);
      if (!replaced(old.substr(begin, i - begin))) changes.push_back({c, 0});
    }
  }
  if (!changed) return;
  Rewriter rewriter(text);
  for (const Change& change : changes) rewriter.put(change.c, change.change);
  rewriter.finish();
}

}  // namespace masque::text
