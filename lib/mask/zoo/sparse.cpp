// Sparse patterns with global tokens or blocks.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/builtin.hpp"
#include "mask/sampler.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

namespace {

/// Rows and columns of the listed positions; `name` is the mask's.
Mask global_positions(std::string_view name, const std::vector<Index>& positions, Lengths l) {
  std::vector<bool> global(static_cast<std::size_t>(l.keys), false);
  for (const Index position : positions) {
    if (position >= l.keys) {
      throw UsageError(fmt::format("{}: position {}, expected below {}", name, position, l.keys));
    }
    global[static_cast<std::size_t>(position)] = true;
  }
  return columns(l, global) | rows(l, global);
}

const MaskKind kFixed{
    "fixed",
    {{"l", MaskParameterKind::kCount, {}, 1}, {"c", MaskParameterKind::kCount, {}, 0}},
    "j ≤ i and (⌊j/l⌋ = ⌊i/l⌋ or j mod l ≥ l − c)",
    "Sparse Transformer, Child et al. 2019, arXiv:1904.10509",
    "",
    "fixed(4,1)",
    [](const MaskValues& v, Lengths l) {
      const Index size = v.count("l");
      std::vector<bool> summary(static_cast<std::size_t>(l.keys), false);
      for (Index j = 0; j < l.keys; ++j) {
        summary[static_cast<std::size_t>(j)] = j % size >= size - v.count("c");
      }
      return band(l, 0, kUnbounded) & (chunk_band(l, size, 0, 0) | columns(l, summary));
    }};
const MaskRegistration kFixedRegistration{kFixed};

const MaskKind kGlobal{
    "global",
    {{"g", MaskParameterKind::kList}},
    "i or j is global",
    "Extended Transformer Construction, Ainslie et al. 2020, arXiv:2004.08483; g: global "
    "positions",
    "",
    "global(0,8)",
    [](const MaskValues& v, Lengths l) { return global_positions("global", v.numbers(), l); },
    nullptr,
    Fits::kSquare};
const MaskRegistration kGlobalRegistration{kGlobal};

const MaskKind kLongformer{"longformer",
                           {{"w"}, {"g", MaskParameterKind::kList}},
                           "|i − j| ≤ w, or i or j is global",
                           "Longformer, Beltagy et al. 2020, arXiv:2004.05150; g: global positions",
                           "",
                           "longformer(2,0,8)",
                           [](const MaskValues& v, Lengths l) {
                             return band(l, -v.count("w"), v.count("w")) |
                                    global_positions("longformer", v.numbers(), l);
                           },
                           nullptr,
                           Fits::kSquare};
const MaskRegistration kLongformerRegistration{kLongformer};

// Blocks of b tokens: a window of three, the first and the last one global (row and column), r
// random others a row. transformers' model reads texts of up to `full` tokens under full attention.
const MaskKind kBigbird{
    "bigbird",
    {{"b", MaskParameterKind::kCount, {}, 1},
     {"r"},
     {"seed", MaskParameterKind::kSeed, 0.0},
     {"full", MaskParameterKind::kCount, 0.0}},
    "blocks of b positions: a window of 3 blocks, the first and last block global, r random blocks "
    "per row; up to n = full all",
    "BigBird, Zaheer et al. 2020, arXiv:2007.14062 (internal transformer construction)",
    "",
    "bigbird(2,1,1)",
    [](const MaskValues& v, Lengths l) {
      if (l.queries <= v.count("full")) return band(l, -kUnbounded, kUnbounded);
      const Index size = v.count("b");
      const Index blocks = divide_up(l.queries, size);
      const Lengths small{blocks, blocks};
      std::vector<bool> global(static_cast<std::size_t>(blocks), false);
      if (blocks > 0) global.front() = global.back() = true;
      BitMatrix random(blocks, blocks);
      for (Index row = 0; row < blocks; ++row) {
        throw_if_interrupted();
        // Among the blocks that the row does not read anyway.
        std::vector<Index> others;
        for (Index column = 1; column + 1 < blocks; ++column) {
          if (std::abs(row - column) > 1) others.push_back(column);
        }
        Draw draw(v.seed("seed"), "mask bigbird", static_cast<std::uint64_t>(row));
        const auto count = static_cast<Index>(others.size());
        const auto chosen = random_subset(count, std::min(count, v.count("r")), draw);
        for (std::size_t i = 0; i < others.size(); ++i) {
          if (chosen[i]) random.set(row, others[i]);
        }
      }
      const Mask pattern = band(small, -1, 1) | columns(small, global) | rows(small, global) |
                           from_bits(std::move(random));
      return blown_up(l, pattern, size);
    },
    nullptr,
    Fits::kSquare};
const MaskRegistration kBigbirdRegistration{kBigbird};

const MaskKind kVisible{
    "visible",
    {{"tree", MaskParameterKind::kList}},
    "i and j on the same branch: the sentence, or an injected branch with its head",
    "K-BERT's visible matrix, Liu et al. 2019, arXiv:1909.07606; numbers: length of the sentence, "
    "then len@head for each branch",
    "",
    "visible(9,4@2,3@6)",
    [](const MaskValues& v, Lengths l) {
      const Index n = l.queries;
      const auto& tree = v.list();
      const Index sentence = tree.front().a;
      Index next = sentence;
      if (tree.front().at || tree.front().to || sentence > n) {
        throw UsageError(
            fmt::format("visible: expected the length of the sentence first, at most {}", n));
      }
      BitMatrix bits(n, n);
      for (Index i = 0; i < sentence; ++i) {
        throw_if_interrupted();
        for (Index j = 0; j < sentence; ++j) bits.set(i, j);
      }
      for (std::size_t b = 1; b < tree.size(); ++b) {
        const ListItem& branch = tree[b];
        if (!branch.at || *branch.at >= sentence || next + branch.a > n) {
          throw UsageError(fmt::format(
              "visible: branch {}, expected len@head with a head below {} and an end of at most {}",
              b, sentence, n));
        }
        for (Index i = next; i < next + branch.a; ++i) {
          throw_if_interrupted();
          bits.set(i, *branch.at);
          bits.set(*branch.at, i);
          for (Index j = next; j < next + branch.a; ++j) bits.set(i, j);
        }
        next += branch.a;
      }
      if (next != n) {
        throw UsageError(fmt::format("visible: {} tokens in all, expected {}", next, n));
      }
      return from_bits(std::move(bits));
    },
    nullptr,
    Fits::kSquare,
    [](const MaskValues& v) -> std::optional<Lengths> {
      Index sum = 0;
      for (const ListItem& item : v.list()) sum += item.a;
      return Lengths{sum, sum};
    }};
const MaskRegistration kVisibleRegistration{kVisible};

}  // namespace

}  // namespace masque::mask
