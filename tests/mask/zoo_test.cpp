// Every registered mask, in a loop: what is derived must equal the predicate.
#include "mask/zoo.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/block_map.hpp"
#include "mask/expression.hpp"
#include "support/message.hpp"

namespace masque::mask {
namespace {

using test::contains;
using test::message_of;

constexpr Index kExampleLength = 16;

Mask example(const MaskKind& kind) {
  return parse_mask(kind.example).bind({kExampleLength, kExampleLength});
}

/// A mask of another length, where its parameters allow one.
std::vector<Mask> examples(const MaskKind& kind) {
  std::vector<Mask> out = {example(kind)};
  const bool fixed =
      std::any_of(kind.parameters.begin(), kind.parameters.end(),
                  [](const MaskParameter& p) { return p.kind == MaskParameterKind::kList; });
  const std::set<std::string_view> sized = {"unilm", "uniae", "uniae_latent", "glm", "matrix"};
  if (fixed || sized.contains(kind.name)) return out;
  for (const Index n : {Index{2}, Index{64}, Index{150}}) {
    out.push_back(parse_mask(kind.example).bind({n, n}));
  }
  return out;
}

std::uint64_t count_pairs(const Mask& mask) {
  std::uint64_t count = 0;
  for (Index q = 0; q < mask.lengths().queries; ++q) {
    for (Index k = 0; k < mask.lengths().keys; ++k) count += mask.allows(q, k);
  }
  return count;
}

void check_derived(const Mask& mask) {
  const auto [queries, keys] = mask.lengths();
  for (Index q = 0; q < queries; ++q) {
    for (Index k0 = 0; k0 < keys; ++k0) {
      for (const int n : {1, 7, 64}) {
        if (k0 + n > keys) continue;
        std::uint64_t expected = 0;
        for (int i = 0; i < n; ++i) expected |= std::uint64_t{mask.allows(q, k0 + i)} << i;
        REQUIRE(mask.bits(q, k0, n) == expected);
      }
    }
  }
  for (const Index size : {Index{1}, Index{3}, Index{16}, Index{64}}) {
    for (Index q = 0; q < queries; q += size) {
      for (Index k = 0; k < keys; k += size) {
        const Range rows{q, std::min(q + size, queries)};
        const Range columns{k, std::min(k + size, keys)};
        Index visible = 0;
        for (Index i = rows.begin; i < rows.end; ++i) {
          for (Index j = columns.begin; j < columns.end; ++j) visible += mask.allows(i, j);
        }
        Tile tile;
        mask.tile(rows, columns, tile);
        for (Index i = rows.begin; i < rows.end; ++i) {
          REQUIRE(tile[static_cast<std::size_t>(i - rows.begin)] ==
                  mask.bits(i, columns.begin, static_cast<int>(columns.size())));
        }
        const Cover cover = mask.cover(rows, columns);
        if (cover == Cover::kEmpty) REQUIRE(visible == 0);
        if (cover == Cover::kFull) REQUIRE(visible == rows.size() * columns.size());
      }
    }
  }
  const BlockMap map(mask);
  const BitMatrix bits = to_bits(mask);
  for (Index q = 0; q < queries; ++q) {
    Index visible = 0;
    for (Index k = 0; k < keys; ++k) {
      visible += mask.allows(q, k);
      REQUIRE(bits.get(q, k) == mask.allows(q, k));
    }
    REQUIRE(map.visible(q) == visible);
  }
}

TEST_CASE("bits, covers, block maps and matrices of every mask equal its predicate") {
  REQUIRE(mask_kinds().size() >= 30);
  for (const MaskKind* kind : mask_kinds()) {
    CAPTURE(kind->name);
    for (const Mask& mask : examples(*kind)) {
      CAPTURE(mask.lengths().queries);
      check_derived(mask);
    }
  }
}

TEST_CASE("pair counts follow their formulas") {
  for (const MaskKind* kind : mask_kinds()) {
    if (kind->count == nullptr ||
        std::string_view(kind->example).find(' ') != std::string_view::npos)
      continue;
    CAPTURE(kind->name);
    const MaskExpression expression = parse_mask(kind->example);
    for (const Mask& mask : examples(*kind)) {
      CAPTURE(mask.lengths().queries);
      CHECK(count_pairs(mask) ==
            kind->count(mask_values(expression.named()), mask.lengths().queries));
    }
  }
}

TEST_CASE("every mask says what it is") {
  std::set<std::string_view> names;
  for (const MaskKind* kind : mask_kinds()) {
    CAPTURE(kind->name);
    CHECK(names.insert(kind->name).second);
    CHECK_FALSE(kind->formula.empty());
    CHECK_FALSE(kind->origin.empty());
    const MaskExpression parsed = parse_mask(kind->example);
    CHECK(parse_mask(parsed.text()) == parsed);
  }
}

Mask zoo_mask(const char* text, Index n) { return parse_mask(text).bind({n, n}); }

TEST_CASE("identities between masks") {
  const auto same = [](const char* a, const char* b, Index n) {
    CAPTURE(a);
    CAPTURE(b);
    CHECK(to_bits(zoo_mask(a, n)) == to_bits(zoo_mask(b, n)));
  };
  for (const Index n : {Index{1}, Index{2}, Index{7}, Index{16}, Index{65}}) {
    CAPTURE(n);
    same("causal & reverse", "diagonal", n);
    same("tta", "~diagonal", n);
    same("tta_window(0)", "tta", n);
    same("window(0)", "diagonal", n);
    same("causal & window(3)", "causal_window(4)", n);
    same("super(4)", "window(3)", n);
    same("strict_causal", "causal & tta", n);
    same("chunk(1)", "diagonal", n);
    same("dilated(3,1)", "window(3)", n);
    same("strided(1)", "causal", n);
    same("fixed(1,1)", "causal", n);
    same("fixed(100,0)", "causal", n);
    same("sinks(0,4)", "causal_window(4)", n);
    same("block_causal(100)", "causal", n);
    same("causal_blocks(1)", "causal", n);
    same("causal_blocks(100)", "full", n);
    same("block_memory(3,0)", "chunk(3)", n);
    same("block_memory(3,1000)", "causal_blocks(3)", n);
    same("causal & block_memory(4,4)", "block_causal(4)", n);
    same("block_memory(1,5) ", "causal_window(6)", n);
    same("causal_blocks(3) & ~chunk(3)", "~reverse & ~chunk(3)", n);
    same("random(0)", "~full", n);
    same("random(1)", "full", n);
    same("mae(0)", "full", n);
    same("mae(1)", "~full", n);
    same("~(causal & window(2))", "~causal | ~window(2)", n);
    same("~(causal | prefix(1))", "~causal & ~prefix(1)", n);
  }
  same("unilm(8,0)", "full", 8);
  same("unilm(0,8)", "causal", 8);
  same("unilm(3,5)", "causal | prefix(3)", 8);
  same("uniae(3,5)", "document(3,5) & (prefix(3) | causal)", 8);
  same("glm(3,5)", "unilm(3,5)", 8);
  same("perm_content(0-7)", "causal", 8);
  same("perm_query(0-7)", "strict_causal", 8);
  same("perm_content(7,6,5,4,3,2,1,0)", "reverse", 8);
  same("tta_word(1,1,1,1)", "tta", 4);
  same("tta_word_l2r(4)", "strict_causal", 4);
  same("visible(4)", "full", 4);
  same("longformer(0,0-3)", "full", 4);
  same("longformer(2,1,5)", "window(2) | global(1,5)", 9);
  same("global(0-3)", "full", 4);
}

TEST_CASE("the four-token figures of the XLNet paper: order 3 2 4 1") {
  // Positions from 0: the order is 2, 1, 3, 0.
  const BitMatrix content = to_bits(zoo_mask("perm_content(2,1,3,0)", 4));
  const BitMatrix query = to_bits(zoo_mask("perm_query(2,1,3,0)", 4));
  const char* rows_content[] = {"1111", "0110", "0010", "0111"};
  const char* rows_query[] = {"0111", "0010", "0000", "0110"};
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 4; ++j) {
      CHECK(content.get(i, j) == (rows_content[i][j] == '1'));
      CHECK(query.get(i, j) == (rows_query[i][j] == '1'));
    }
  }
}

/// As BD3-LM's code says it (block_diff_mask): three terms on flags and numbers of blocks.
bool block_diffusion_of_paper(Index q, Index k, Index n, Index b) {
  const bool q_clean = q >= n;
  const bool k_clean = k >= n;
  const Index q_block = (q_clean ? q - n : q) / b;
  const Index k_block = (k_clean ? k - n : k) / b;
  const bool diagonal = q_block == k_block && q_clean == k_clean;
  const bool offset = q_block > k_block && k_clean && !q_clean;
  const bool causal = q_block >= k_block && k_clean && q_clean;
  return diagonal || offset || causal;
}

TEST_CASE("block diffusion: the paper's three terms, for blocks that fit and that do not") {
  for (const Index n : {1, 2, 7, 16, 45}) {
    for (const Index b : {1, 2, 4, 7, 100}) {
      CAPTURE(n);
      CAPTURE(b);
      const Mask mask =
          parse_mask("block_diffusion(" + std::to_string(b) + ")").bind({2 * n, 2 * n});
      for (Index q = 0; q < 2 * n; ++q) {
        for (Index k = 0; k < 2 * n; ++k)
          REQUIRE(mask.allows(q, k) == block_diffusion_of_paper(q, k, n, b));
      }
      check_derived(mask);
    }
  }
}

TEST_CASE("causal with more keys than queries takes its offset explicitly") {
  const auto bind = [](const char* text) { return parse_mask(text).bind({4, 12}); };
  CHECK(contains(message_of<UsageError>([&] { bind("causal"); }), "needs an offset: add offset=8"));
  const Mask mask = bind("causal(8)");
  CHECK(mask.allows(0, 8));
  CHECK_FALSE(mask.allows(0, 9));
  CHECK(mask.allows(3, 11));
  check_derived(mask);
}

TEST_CASE("parameters that do not fit the length are refused") {
  const auto message = [](const char* text, Index n) {
    return message_of<UsageError>([&] { zoo_mask(text, n); });
  };
  CHECK(contains(message("unilm(3,4)", 8), "add up to 7, expected the length 8"));
  CHECK(contains(message("document(3,4)", 8), "add up to 7, expected 8"));
  CHECK(contains(message("document(3,9)", 8), "add up to more than 8"));
  CHECK(contains(message("keep(8)", 8), "key 8, expected below 8"));
  CHECK(contains(message("perm_content(0,1,1)", 3), "listed twice"));
  CHECK(contains(message("perm_content(0,1)", 3), "an order of 2 positions"));
  CHECK(contains(message("xlnet_hf(1)", 7), "expected an even length"));
  CHECK(contains(message("block_diffusion(2)", 7), "expected an even length"));
  CHECK(contains(message("visible(3,2@5)", 5), "expected len@head"));
  CHECK(contains(message("xlnet(1,9)", 8), "predict is 9, expected at most the length 8"));
}

TEST_CASE("seeded masks are the same each time and differ between seeds") {
  for (const char* text : {"disco(1)", "mae(0.5,1)", "perm_content(seed=1)", "xlnet(1)",
                           "xlnet_hf(1)", "bigbird(4,2,1)", "random(0.5,1)"}) {
    CAPTURE(text);
    CHECK(to_bits(zoo_mask(text, 64)) == to_bits(zoo_mask(text, 64)));
    std::string other = text;
    other[other.rfind('1')] = '2';
    CHECK_FALSE(to_bits(zoo_mask(text, 64)) == to_bits(zoo_mask(other.c_str(), 64)));
  }
}

TEST_CASE("bigbird: all of a text of up to `full` tokens, longer ones in blocks") {
  for (const Index n : {1, 5, 11})
    CHECK(to_bits(zoo_mask("bigbird(2,0,full=11)", n)).count() == n * n);
  // The last block has one token.
  CHECK(to_bits(zoo_mask("bigbird(2,0,full=12)", 13)) == to_bits(zoo_mask("bigbird(2,0)", 13)));
  const Mask mask = zoo_mask("bigbird(2,0,full=12)", 13);
  check_derived(mask);
  for (Index i = 0; i < 13; ++i) {
    for (Index j = 0; j < 13; ++j) {
      const bool global = i < 2 || j < 2 || i == 12 || j == 12;
      CHECK(mask.allows(i, j) == (global || std::abs(i / 2 - j / 2) <= 1));
    }
  }
}

TEST_CASE("disco rows see between one and all of the others, never themselves") {
  const Mask mask = zoo_mask("disco(5)", 40);
  for (Index i = 0; i < 40; ++i) {
    Index count = 0;
    for (Index j = 0; j < 40; ++j) count += mask.allows(i, j);
    CHECK(count >= 1);
    CHECK(count <= 39);
    CHECK_FALSE(mask.allows(i, i));
  }
  CHECK(count_pairs(zoo_mask("disco(5)", 1)) == 0);
}

}  // namespace
}  // namespace masque::mask
