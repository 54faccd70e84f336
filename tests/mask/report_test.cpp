// Numbers about masks, found without looking at every cell, against a count of every cell.
#include "mask/report.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/compare.hpp"
#include "mask/expression.hpp"
#include "mask/zoo.hpp"
#include "support/message.hpp"

namespace masque::mask {
namespace {

using test::message_of;

Mask bound(const char* text, Lengths lengths) { return parse_mask(text).bind(lengths); }
Mask bound(const char* text, Index n) { return bound(text, {n, n}); }

Cover exact_cover(const Mask& mask, Range q, Range k) {
  Index visible = 0;
  for (Index i = q.begin; i < q.end; ++i) {
    for (Index j = k.begin; j < k.end; ++j) visible += mask.allows(i, j);
  }
  if (visible == 0) return Cover::kEmpty;
  return visible == q.size() * k.size() ? Cover::kFull : Cover::kPartial;
}

void check_report(const Mask& mask, Index block) {
  const auto [queries, keys] = mask.lengths();
  const MaskReport report = report_mask(mask, block);
  std::uint64_t pairs = 0, empty = 0, self = 0;
  Index least = keys, most = 0, back = 0, ahead = 0;
  bool symmetric = queries == keys, causal = true, strict = true;
  std::set<Index> read;
  for (Index i = 0; i < queries; ++i) {
    Index count = 0;
    for (Index j = 0; j < keys; ++j) {
      if (!mask.allows(i, j)) continue;
      ++count;
      read.insert(j);
      back = std::max(back, i - j);
      ahead = std::max(ahead, j - i);
      causal = causal && j <= i;
      strict = strict && j < i;
      symmetric = symmetric && mask.allows(j, i);
      self += i == j;
    }
    pairs += static_cast<std::uint64_t>(count);
    empty += count == 0;
    least = std::min(least, count);
    most = std::max(most, count);
  }
  CHECK(report.visible_pairs == pairs);
  CHECK(report.empty_rows == empty);
  CHECK(report.unread_keys == static_cast<std::uint64_t>(keys) - read.size());
  CHECK(report.self_visible == self);
  CHECK(report.symmetric == symmetric);
  CHECK(report.causal == causal);
  CHECK(report.strictly_causal == strict);
  CHECK(report.farthest_back == back);
  CHECK(report.farthest_ahead == ahead);
  CHECK(report.n_min == (queries == 0 ? 0 : least));
  CHECK(report.n_max == most);
  BlockReport blocks{.size = block};
  for (Index q = 0; q < queries; q += block) {
    for (Index k = 0; k < keys; k += block) {
      const Range rows{q, std::min(queries, q + block)};
      const Range columns{k, std::min(keys, k + block)};
      const Cover cover = exact_cover(mask, rows, columns);
      ++(cover == Cover::kEmpty  ? blocks.empty
         : cover == Cover::kFull ? blocks.full
                                 : blocks.partial);
      if (cover != Cover::kEmpty) {
        blocks.kept_cells += static_cast<std::uint64_t>(rows.size() * columns.size());
      }
    }
  }
  CHECK(report.blocks.empty == blocks.empty);
  CHECK(report.blocks.partial == blocks.partial);
  CHECK(report.blocks.full == blocks.full);
  CHECK(report.blocks.kept_cells == blocks.kept_cells);
}

TEST_CASE("reports equal a count of every cell, for every mask and block size") {
  for (const MaskKind* kind : mask_kinds()) {
    CAPTURE(kind->name);
    const Mask mask = parse_mask(kind->example).bind({16, 16});
    for (const Index block : {Index{1}, Index{3}, Index{16}, Index{100}}) check_report(mask, block);
  }
  for (const char* text : {"causal & window(70)", "tta", "window(5) | prefix(3)", "strided(64)",
                           "~full", "full", "random(0.5,1)", "reverse & chunk(33)"}) {
    CAPTURE(text);
    check_report(bound(text, 150), 64);
    check_report(bound(text, 1), 7);
    check_report(bound(text, 0), 7);
  }
  check_report(bound("causal(13)", {130, 143}), 32);
  check_report(bound("window(4)", {70, 200}), 64);
}

TEST_CASE("a block size of nothing is an error") {
  CHECK(message_of<UsageError>([] { report_mask(bound("causal", 4), 0); }) ==
        "block size below 1, expected at least 1");
}

TEST_CASE("a million positions are looked at by their borders") {
  const MaskReport report = report_mask(bound("causal & window(256)", 1'000'000), 128);
  CHECK(report.visible_pairs == 257ULL * 1'000'000 - 256 * 257 / 2);
  CHECK(report.n_max == 257);
  CHECK(report.causal);
  CHECK_FALSE(report.symmetric);
  CHECK(report_mask(bound("window(256)", 1'000'000), 128).symmetric);
}

TEST_CASE("overviews count every square, so the thinnest line is seen") {
  for (const char* text : {"diagonal", "tta", "causal & window(9)", "keep(77)", "random(0.3,2)"}) {
    CAPTURE(text);
    for (const Index zoom : {Index{1}, Index{2}, Index{7}, Index{64}, Index{100}, Index{1000}}) {
      CAPTURE(zoom);
      const Mask mask = bound(text, 201);
      const Overview overview(mask, zoom);
      for (Index row = 0; row < overview.rows(); ++row) {
        for (Index column = 0; column < overview.columns(); ++column) {
          const Range q{row * zoom, std::min<Index>(201, (row + 1) * zoom)};
          const Range k{column * zoom, std::min<Index>(201, (column + 1) * zoom)};
          REQUIRE(overview.cover(row, column) == exact_cover(mask, q, k));
        }
      }
    }
  }
}

TEST_CASE("differences are counted, and the first one is the first by rows") {
  for (const auto& texts :
       std::vector<std::pair<const char*, const char*>>{{"causal", "strict_causal"},
                                                        {"causal", "causal"},
                                                        {"window(3)", "reverse"},
                                                        {"random(0.5,1)", "random(0.5,2)"},
                                                        {"full", "~full"}}) {
    const auto& a = texts.first;
    const auto& b = texts.second;
    CAPTURE(a);
    CAPTURE(b);
    const Mask mask_a = bound(a, 131);
    const Mask mask_b = bound(b, 131);
    std::uint64_t only_a = 0, only_b = 0, both = 0;
    std::optional<MaskDifference::Cell> first;
    for (Index i = 0; i < 131; ++i) {
      for (Index j = 0; j < 131; ++j) {
        const bool in_a = mask_a.allows(i, j);
        const bool in_b = mask_b.allows(i, j);
        only_a += in_a && !in_b;
        only_b += in_b && !in_a;
        both += in_a && in_b;
        if (in_a != in_b && !first) first = MaskDifference::Cell{i, j};
      }
    }
    const MaskDifference difference = compare_masks(mask_a, mask_b);
    CHECK(difference.only_a == only_a);
    CHECK(difference.only_b == only_b);
    CHECK(difference.both == both);
    REQUIRE(difference.first.has_value() == first.has_value());
    if (first) {
      CHECK(difference.first->query == first->query);
      CHECK(difference.first->key == first->key);
    }
  }
}

TEST_CASE("masks say which lengths they ask for") {
  const auto own = [](const char* text) { return parse_mask(text).own_lengths(); };
  CHECK(own("causal & document(3,5)") == Lengths{8, 8});
  CHECK(own("unilm(3,6)") == Lengths{9, 9});
  CHECK(own("~visible(5,2@1,4@0)") == Lengths{11, 11});
  CHECK(own("perm_query(2,0,1)") == Lengths{3, 3});
  CHECK_FALSE(own("perm_query(seed=1)").has_value());
  CHECK_FALSE(own("causal | prefix(3)").has_value());
}

TEST_CASE("square masks refuse other lengths, and only they do") {
  for (const MaskKind* kind : mask_kinds()) {
    CAPTURE(kind->name);
    const MaskExpression example = parse_mask(kind->example);
    if (kind->fits != Fits::kAny) {
      CHECK(message_of<UsageError>([&] {
              example.bind({16, 20});
            }).ends_with("16 queries and 20 keys, expected equal numbers"));
      continue;
    }
    const bool has_offset = std::any_of(kind->parameters.begin(), kind->parameters.end(),
                                        [](const MaskParameter& p) { return p.name == "offset"; });
    if (!has_offset)
      CHECK(parse_mask(kind->example == std::string_view("causal | prefix(5)") ? "prefix(5)"
                                                                               : kind->example)
                .bind({16, 20})
                .lengths() == Lengths{16, 20});
  }
}

TEST_CASE("a range of queries is that part of the whole mask") {
  for (const MaskKind* kind : mask_kinds()) {
    CAPTURE(kind->name);
    const Mask whole = parse_mask(kind->example).bind({16, 16});
    const Mask part = query_range(whole, 9, 5);
    REQUIRE(part.lengths() == Lengths{5, 16});
    const BitMatrix bits = to_bits(part);
    for (Index q = 0; q < 5; ++q) {
      for (Index k = 0; k < 16; ++k) REQUIRE(bits.get(q, k) == whole.allows(q + 9, k));
    }
    CHECK(visible_keys(part).front() == visible_keys(whole)[9]);
  }
}

}  // namespace
}  // namespace masque::mask
