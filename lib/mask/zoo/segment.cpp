// Masks made of parts of a sequence: prefixes, segments, chunks, documents, padding, kept columns.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/builtin.hpp"
#include "mask/sampler.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

namespace {

using U = std::uint64_t;

std::vector<bool> first(Index count, Index n) {
  std::vector<bool> flags(static_cast<std::size_t>(n), false);
  std::fill(flags.begin(), flags.begin() + std::min(count, n), true);
  return flags;
}

/// Both parts must fill the sequence.
void need_parts(std::string_view name, Index a, Index b, Lengths lengths) {
  if (a + b != lengths.queries) {
    throw UsageError(fmt::format("{}: parts of {} and {} add up to {}, expected the length {}",
                                 name, a, b, a + b, lengths.queries));
  }
}

/// Group number of every position for runs of these lengths.
std::vector<Index> groups_of(std::string_view name, const std::vector<Index>& sizes, Index n) {
  std::vector<Index> groups;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (static_cast<Index>(groups.size()) + sizes[i] > n) {
      throw UsageError(fmt::format("{}: lengths add up to more than {}", name, n));
    }
    groups.insert(groups.end(), static_cast<std::size_t>(sizes[i]), static_cast<Index>(i));
  }
  if (static_cast<Index>(groups.size()) != n) {
    throw UsageError(fmt::format("{}: lengths add up to {}, expected {}", name, groups.size(), n));
  }
  return groups;
}

/// Σ (block length)² of n positions in blocks of c, the last one perhaps shorter.
U squared_blocks(Index n, Index c) {
  const U size = as_unsigned(c);
  return as_unsigned(n) / size * size * size + as_unsigned(n) % size * (as_unsigned(n) % size);
}

std::optional<Lengths> sum_of(const MaskValues& v) {
  Index sum = 0;
  for (const Index len : v.numbers()) sum += len;
  return Lengths{sum, sum};
}

const MaskKind kPrefix{
    "prefix",
    {{"s"}},
    "j < s",
    "all queries read the first s keys; a prefix LM is causal | prefix(s)",
    "n·s",
    "causal | prefix(5)",
    [](const MaskValues& v, Lengths l) { return columns(l, first(v.count("s"), l.keys)); },
    [](const MaskValues& v, Index n) {
      return as_unsigned(n) * as_unsigned(std::min(n, v.count("s")));
    }};
const MaskRegistration kPrefixRegistration{kPrefix};

const MaskKind kPad{
    "pad",
    {{"len"}},
    "j < len",
    "keys from position len on are padding",
    "n·len",
    "pad(12)",
    [](const MaskValues& v, Lengths l) { return columns(l, first(v.count("len"), l.keys)); },
    [](const MaskValues& v, Index n) {
      return as_unsigned(n) * as_unsigned(std::min(n, v.count("len")));
    }};
const MaskRegistration kPadRegistration{kPad};

// With c = cumsum(segment), c_j ≤ c_i: the source reads itself, the target also what came before.
const MaskKind kUnilm{"unilm",
                      {{"s"}, {"t"}},
                      "j < s or j ≤ i",
                      "UniLM, Dong et al. 2019, arXiv:1905.03197",
                      "s² + s·t + t(t+1)/2",
                      "unilm(6,10)",
                      [](const MaskValues& v, Lengths l) {
                        need_parts("unilm", v.count("s"), v.count("t"), l);
                        return columns(l, first(v.count("s"), l.keys)) | band(l, 0, kUnbounded);
                      },
                      [](const MaskValues& v, Index) {
                        const U s = as_unsigned(v.count("s"));
                        const U t = as_unsigned(v.count("t"));
                        return s * s + s * t + t * (t + 1) / 2;
                      },
                      Fits::kParts};
const MaskRegistration kUnilmRegistration{kUnilm};

Mask uniae(const MaskValues& v, Lengths l, std::string_view name) {
  need_parts(name, v.count("s"), v.count("t"), l);
  const std::vector<bool> source = first(v.count("s"), l.keys);
  const Mask from_source = rows(l, source);
  return (from_source & columns(l, source)) |
         (~from_source & ~columns(l, source) & band(l, 0, kUnbounded));
}

const MaskKind kUniae{"uniae",
                      {{"s"}, {"t"}},
                      "same segment, and j < s or j ≤ i",
                      "UniVAE, layers without latents, kexue.fm/archives/8475",
                      "s² + t(t+1)/2",
                      "uniae(8,8)",
                      [](const MaskValues& v, Lengths l) { return uniae(v, l, "uniae"); },
                      [](const MaskValues& v, Index) {
                        const U s = as_unsigned(v.count("s"));
                        const U t = as_unsigned(v.count("t"));
                        return s * s + t * (t + 1) / 2;
                      },
                      Fits::kParts};
const MaskRegistration kUniaeRegistration{kUniae};

const MaskKind kUniaeLatent{"uniae_latent",
                            {{"s"}, {"t"}},
                            "uniae(s,t) or j = 0",
                            "UniVAE, layers with latents, kexue.fm/archives/8475",
                            "s² + t + t(t+1)/2",
                            "uniae_latent(8,8)",
                            [](const MaskValues& v, Lengths l) {
                              return uniae(v, l, "uniae_latent") | columns(l, first(1, l.keys));
                            },
                            [](const MaskValues& v, Index) {
                              const U s = as_unsigned(v.count("s"));
                              const U t = as_unsigned(v.count("t"));
                              return s == 0 ? t * (t + 1) / 2 : s * s + t + t * (t + 1) / 2;
                            },
                            Fits::kParts};
const MaskRegistration kUniaeLatentRegistration{kUniaeLatent};

const MaskKind kGlm{
    "glm",
    {{"a"}, {"b"}},
    "j < a or (i ≥ a and j ≤ i)",
    "blank infilling: all queries read part A, part B is causal; GLM, arXiv:2103.10360",
    "a² + a·b + b(b+1)/2",
    "glm(9,7)",
    [](const MaskValues& v, Lengths l) {
      need_parts("glm", v.count("a"), v.count("b"), l);
      return columns(l, first(v.count("a"), l.keys)) | band(l, 0, kUnbounded);
    },
    [](const MaskValues& v, Index) {
      const U a = as_unsigned(v.count("a"));
      const U b = as_unsigned(v.count("b"));
      return a * a + a * b + b * (b + 1) / 2;
    },
    Fits::kParts};
const MaskRegistration kGlmRegistration{kGlm};

const MaskKind kChunk{
    "chunk",
    {{"c", MaskParameterKind::kCount, {}, 1}},
    "⌊i/c⌋ = ⌊j/c⌋",
    "FLASH, Hua et al. 2022, arXiv:2202.10447",
    "Σ (chunk length)²",
    "chunk(4)",
    [](const MaskValues& v, Lengths l) { return chunk_band(l, v.count("c"), 0, 0); },
    [](const MaskValues& v, Index n) { return squared_blocks(n, v.count("c")); }};
const MaskRegistration kChunkRegistration{kChunk};

const MaskKind kBlockCausal{"block_causal",
                            {{"c", MaskParameterKind::kCount, {}, 1}},
                            "j ≤ i and ⌊i/c⌋ − ⌊j/c⌋ ∈ {0, 1}",
                            "blockwise causal attention of xPos, Sun et al. 2022, arXiv:2212.10554",
                            "",
                            "block_causal(4)",
                            [](const MaskValues& v, Lengths l) {
                              return band(l, 0, kUnbounded) & chunk_band(l, v.count("c"), 0, 1);
                            }};
const MaskRegistration kBlockCausalRegistration{kBlockCausal};

const MaskKind kCausalBlocks{
    "causal_blocks",
    {{"b", MaskParameterKind::kCount, {}, 1}},
    "⌊j/b⌋ ≤ ⌊i/b⌋",
    "causal between blocks, bidirectional within a block; generation by block diffusion, "
    "arXiv:2503.09573",
    "(n² + Σ (block length)²)/2",
    "causal_blocks(4)",
    [](const MaskValues& v, Lengths l) { return chunk_band(l, v.count("b"), 0, kUnbounded); },
    [](const MaskValues& v, Index n) {
      return (as_unsigned(n) * as_unsigned(n) + squared_blocks(n, v.count("b"))) / 2;
    }};
const MaskRegistration kCausalBlocksRegistration{kCausalBlocks};

/// Pairs of blocks of b with themselves and the m positions in front of each.
U memory_pairs(Index n, Index b, Index m) {
  const Index blocks = n / b, rest = n % b;
  U pairs = squared_blocks(n, b) + as_unsigned(rest) * as_unsigned(std::min(m, blocks * b));
  if (blocks == 0) return pairs;
  // Block t has min(m, t·b) positions in front of it; the first `short_of` of them fewer than m.
  const Index short_of = std::min(blocks - 1, m / b);
  pairs +=
      as_unsigned(b) * as_unsigned(b) * (as_unsigned(short_of) * as_unsigned(short_of + 1) / 2);
  return pairs + as_unsigned(b) * as_unsigned(blocks - 1 - short_of) * as_unsigned(m);
}

const MaskKind kBlockMemory{
    "block_memory",
    {{"b", MaskParameterKind::kCount, {}, 1}, {"m"}},
    "⌊i/b⌋·b − m ≤ j and ⌊j/b⌋ ≤ ⌊i/b⌋",
    "own block and the m positions before it; Transformer-XL, Dai et al. 2019, arXiv:1901.02860, "
    "is causal & block_memory(b,m)",
    "Σ block length · (block length + min(m, first position))",
    "block_memory(4,3)",
    [](const MaskValues& v, Lengths l) {
      const Index b = v.count("b");
      return chunk_band(l, b, 0, kUnbounded) & chunk_band(l, b, -kUnbounded, 0, 0, v.count("m"));
    },
    [](const MaskValues& v, Index n) { return memory_pairs(n, v.count("b"), v.count("m")); }};
const MaskRegistration kBlockMemoryRegistration{kBlockMemory};

/// What rows read of their own half, and what all rows read of the clean half, by block.
Mask block_diffusion(const MaskValues& v, Lengths l) {
  const Index n = l.queries / 2;
  const Index b = v.count("b");
  const auto size = static_cast<std::size_t>(l.queries);
  std::vector<Index> query_groups(size), key_groups(size), query_ranks(size), key_ranks(size);
  for (Index i = 0; i < l.queries; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool noised = i < n;
    const Index block = (noised ? i : i - n) / b;
    query_groups[at] = noised ? block : -1;
    key_groups[at] = noised ? block : -2;  // clean keys are in no group of a query
    query_ranks[at] = noised ? block - 1 : block;
    key_ranks[at] = noised ? n : block;  // noised keys come after every query
  }
  return same_group(query_groups, key_groups) | rank_order(query_ranks, key_ranks, 0);
}

const MaskKind kBlockDiffusion{"block_diffusion",
                               {{"b", MaskParameterKind::kCount, {}, 1}},
                               "noised reads noised: B(j) = B(i); noised reads clean: B(j) < B(i); "
                               "clean reads clean: B(j) ≤ B(i)",
                               "BD3-LM, Arriola et al. 2025, arXiv:2503.09573: the first half is "
                               "noised, the second clean; B: block of b positions within a half",
                               "(n/2)² + Σ (block length)²",
                               "block_diffusion(2)",
                               block_diffusion,
                               [](const MaskValues& v, Index n) {
                                 return as_unsigned(n / 2) * as_unsigned(n / 2) +
                                        squared_blocks(n / 2, v.count("b"));
                               },
                               Fits::kHalves};
const MaskRegistration kBlockDiffusionRegistration{kBlockDiffusion};

const MaskKind kSinks{"sinks",
                      {{"s"}, {"w", MaskParameterKind::kCount, {}, 1}},
                      "j ≤ i and (j < s or i − j < w)",
                      "StreamingLLM, Xiao et al. 2023, arXiv:2309.17453",
                      "",
                      "sinks(2,4)",
                      [](const MaskValues& v, Lengths l) {
                        return band(l, 0, kUnbounded) & (columns(l, first(v.count("s"), l.keys)) |
                                                         band(l, 0, v.count("w") - 1));
                      }};
const MaskRegistration kSinksRegistration{kSinks};

const MaskKind kDocument{"document",
                         {{"len", MaskParameterKind::kList}},
                         "document(i) = document(j)",
                         "packed documents; the numbers are their lengths in tokens",
                         "Σ len²",
                         "document(5,3,8)",
                         [](const MaskValues& v, Lengths l) {
                           const auto groups = groups_of("document", v.numbers(), l.queries);
                           return same_group(groups, groups);
                         },
                         [](const MaskValues& v, Index) {
                           U sum = 0;
                           for (const Index len : v.numbers())
                             sum += as_unsigned(len) * as_unsigned(len);
                           return sum;
                         },
                         Fits::kSquare,
                         sum_of};
const MaskRegistration kDocumentRegistration{kDocument};

const MaskKind kTtaWord{"tta_word",
                        {{"len", MaskParameterKind::kList}},
                        "word(i) ≠ word(j)",
                        "T-TA over whole words; the numbers are the lengths of the words in tokens",
                        "n² − Σ len²",
                        "tta_word(1,3,2,4,1,5)",
                        [](const MaskValues& v, Lengths l) {
                          const auto groups = groups_of("tta_word", v.numbers(), l.queries);
                          return ~same_group(groups, groups);
                        },
                        [](const MaskValues& v, Index n) {
                          U sum = 0;
                          for (const Index len : v.numbers())
                            sum += as_unsigned(len) * as_unsigned(len);
                          return as_unsigned(n) * as_unsigned(n) - sum;
                        },
                        Fits::kSquare,
                        sum_of,
                        Open::kWords};
const MaskRegistration kTtaWordRegistration{kTtaWord};

const MaskKind kTtaWordL2r{"tta_word_l2r",
                           {{"len", MaskParameterKind::kList}},
                           "not (word(i) = word(j) and j ≥ i)",
                           "T-TA over words, left to right within a word; scoring as in Kauf and "
                           "Ivanova 2023, arXiv:2305.10588",
                           "n² − Σ len(len+1)/2",
                           "tta_word_l2r(1,3,2,4,1,5)",
                           [](const MaskValues& v, Lengths l) {
                             const auto groups = groups_of("tta_word_l2r", v.numbers(), l.queries);
                             return ~(same_group(groups, groups) & band(l, -kUnbounded, 0));
                           },
                           [](const MaskValues& v, Index n) {
                             U sum = 0;
                             for (const Index len : v.numbers())
                               sum += as_unsigned(len) * as_unsigned(len + 1) / 2;
                             return as_unsigned(n) * as_unsigned(n) - sum;
                           },
                           Fits::kSquare,
                           sum_of,
                           Open::kWords};
const MaskRegistration kTtaWordL2rRegistration{kTtaWordL2r};

const MaskKind kKeep{
    "keep",
    {{"keys", MaskParameterKind::kList}},
    "j is kept",
    "MAE with an explicit list of visible keys: keep(0,2,5-9)",
    "n·|keep|",
    "keep(0,2,5-9)",
    [](const MaskValues& v, Lengths l) {
      std::vector<bool> flags(static_cast<std::size_t>(l.keys), false);
      for (const Index key : v.numbers()) {
        if (key >= l.keys)
          throw UsageError(fmt::format("keep: key {}, expected below {}", key, l.keys));
        flags[static_cast<std::size_t>(key)] = true;
      }
      return columns(l, flags);
    }};
const MaskRegistration kKeepRegistration{kKeep};

const MaskKind kMae{
    "mae",
    {{"ratio", MaskParameterKind::kShare}, {"seed", MaskParameterKind::kSeed, 0.0}},
    "j is kept; round(ratio·n) random keys are not",
    "MAE as attention dropout, kexue.fm/archives/8770; He et al. 2021, arXiv:2111.06377",
    "n·(n − round(ratio·n))",
    "mae(0.5,1)",
    [](const MaskValues& v, Lengths l) {
      const auto dropped =
          static_cast<Index>(std::llround(v.share("ratio") * static_cast<double>(l.keys)));
      Draw draw(v.seed("seed"), "mask mae");
      return columns(l, random_subset(l.keys, l.keys - dropped, draw));
    },
    [](const MaskValues& v, Index n) {
      return as_unsigned(n) * as_unsigned(n - static_cast<Index>(std::llround(
                                                  v.share("ratio") * static_cast<double>(n))));
    }};
const MaskRegistration kMaeRegistration{kMae};

}  // namespace

}  // namespace masque::mask
