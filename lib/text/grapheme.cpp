#include "text/grapheme.hpp"

#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

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

}  // namespace

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

}  // namespace masque::text
