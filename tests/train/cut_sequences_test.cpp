// Sequences that are cut when they are asked for, against those of a plain loop.
#include "train/data/cut_sequences.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "support/message.hpp"

namespace masque::train {
namespace {

using Ids = std::vector<TokenId>;

std::shared_ptr<const records::TokenList> list_of(const std::vector<Ids>& lines) {
  auto list = std::make_shared<records::TokenList>();
  for (const Ids& ids : lines) list->add(ids);
  return list;
}

std::vector<Ids> all(const CutSequences& cut) {
  std::vector<Ids> out;
  for (Index i = 0; i < cut.size(); ++i) out.push_back(cut.ids(i));
  return out;
}

/// The definition: all tokens with separators between lines, in pieces.
std::vector<Ids> plain(const std::vector<Ids>& lines, const SequenceShape& shape) {
  std::vector<Ids> out;
  Ids text;
  for (const Ids& line : lines) {
    if (!shape.blocks) {
      out.push_back(shape.sequence(line));
      continue;
    }
    if (!text.empty() && shape.separator) text.push_back(*shape.separator);
    text.insert(text.end(), line.begin(), line.end());
  }
  const auto room = static_cast<std::size_t>(shape.room);
  for (std::size_t at = 0; at + room <= text.size(); at += room)
    out.push_back(shape.sequence(std::span(text).subspan(at, room)));
  return out;
}

TEST_CASE("lines and blocks of any length are those of the plain loop") {
  const RandomStream random(7, "cut sequences", 0);
  std::uint64_t word = 0;
  const auto pick = [&](std::uint64_t n) { return random.block(word++)[0] % n; };
  for (int round = 0; round < 200; ++round) {
    std::vector<Ids> lines(1 + pick(12));
    for (Ids& line : lines) {
      line.resize(1 + pick(9));
      for (TokenId& id : line) id = static_cast<TokenId>(10 + pick(50));
    }
    SequenceShape shape;
    shape.blocks = pick(2) == 0;
    if (pick(2) == 0) shape.before = {1};
    if (pick(2) == 0) shape.after = {2, 3};
    shape.room = static_cast<Index>(1 + pick(14));
    if (shape.blocks && pick(3) > 0) shape.separator = 4;
    CAPTURE(round);
    const CutSequences cut(list_of(lines), shape);
    const std::vector<Ids> expected = plain(lines, shape);
    CHECK(all(cut) == expected);
    Index tokens = 0, longest = 0;
    std::set<Index> seen;
    std::vector<Index> first;
    for (Index i = 0; i < std::ssize(expected); ++i) {
      const Index length = std::ssize(expected[static_cast<std::size_t>(i)]);
      CHECK(cut.length(i) == length);
      tokens += length;
      longest = std::max(longest, length);
      if (seen.insert(length).second) first.push_back(i);
    }
    CHECK(cut.tokens() == tokens);
    CHECK(cut.longest() == longest);
    CHECK(cut.first_of_lengths() == first);
  }
}

TEST_CASE("another text or shape has another digest") {
  const std::vector<Ids> lines{{5, 6, 7}, {8, 9}};
  const SequenceShape shape{true, {1}, {2}, 2, 3};
  const std::string digest = CutSequences(list_of(lines), shape).digest();
  CHECK(CutSequences(list_of(lines), shape).digest() == digest);
  CHECK(CutSequences(list_of({{5, 6}, {7, 8, 9}}), shape).digest() != digest);
  std::vector<SequenceShape> others(5, shape);
  others[0].blocks = false;
  others[1].before = {2};
  others[2].after.clear();
  others[3].room = 3;
  others[4].separator.reset();
  for (const SequenceShape& other : others)
    CHECK(CutSequences(list_of(lines), other).digest() != digest);
}

}  // namespace
}  // namespace masque::train
