#include "text/split.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "text/part_fields.hpp"

namespace masque::text {

namespace {

struct SplitPiece {
  Stretch at;
  bool match;
};

/// All of the word, cut at the matches.
std::vector<SplitPiece> cut(std::size_t size, std::span<const Stretch> matches, bool invert) {
  std::vector<SplitPiece> out;
  std::size_t at = 0;
  for (const Stretch& match : matches) {
    if (at < match.begin) out.push_back({{at, match.begin}, invert});
    out.push_back({match, !invert});
    at = match.end;
  }
  if (at < size) out.push_back({{at, size}, invert});
  return out;
}

/// Joins pieces, in the order of a walk: a piece grows by the next one if joins(before, next) says
/// so of the two as they were.
template <typename Iterator, typename Joins>
std::vector<SplitPiece> joined(Iterator begin, Iterator end, const Joins& joins) {
  std::vector<SplitPiece> out;
  bool before = false;
  for (Iterator i = begin; i != end; ++i) {
    if (!out.empty() && joins(before, i->match)) {
      out.back().at = {std::min(out.back().at.begin, i->at.begin),
                       std::max(out.back().at.end, i->at.end)};
    } else {
      out.push_back({i->at, false});
    }
    before = i->match;
  }
  return out;
}

}  // namespace

SplitBehavior read_split_behavior(const PartFields& fields, std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"Removed", "Isolated", "MergedWithPrevious",
                                                   "MergedWithNext", "Contiguous"};
  const std::string text = fields.text(name);
  const auto* found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) fields.refuse("an unknown '" + std::string(name) + "'");
  return static_cast<SplitBehavior>(found - kNames.begin());
}

void split_word(const AlignedText& word, std::span<const Stretch> matches, bool invert,
                SplitBehavior behavior, std::vector<AlignedText>& out) {
  std::vector<SplitPiece> pieces = cut(word.text.size(), matches, invert);
  const auto same = [](bool before, bool match) { return before == match; };
  const auto next = [](bool before, bool match) { return match && !before; };
  switch (behavior) {
    case SplitBehavior::kRemoved:
      std::erase_if(pieces, [](const SplitPiece& piece) { return piece.match; });
      break;
    case SplitBehavior::kIsolated: break;
    case SplitBehavior::kContiguous: pieces = joined(pieces.begin(), pieces.end(), same); break;
    case SplitBehavior::kMergedWithPrevious:
      pieces = joined(pieces.begin(), pieces.end(), next);
      break;
    case SplitBehavior::kMergedWithNext:
      pieces = joined(pieces.rbegin(), pieces.rend(), next);
      std::reverse(pieces.begin(), pieces.end());
      break;
  }
  for (const SplitPiece& piece : pieces) {
    if (piece.at.begin < piece.at.end) out.push_back(word.part(piece.at.begin, piece.at.end));
  }
}

}  // namespace masque::text
