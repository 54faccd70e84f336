// Permutation language modelling: orders, XLNet's and transformers' partial prediction, DisCo.
#include "mask/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/builtin.hpp"
#include "mask/sampler.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

namespace {

/// Ranks from an order in the arguments (the positions in the order in which they are predicted),
/// or a random one from the seed.
std::vector<Index> ranks_of(const MaskValues& v, std::string_view name, Lengths lengths) {
  const Index n = lengths.queries;
  std::vector<Index> order;
  if (v.list().empty()) {
    Draw draw(v.seed("seed"), "mask permutation");
    order = random_order(n, draw);
  } else {
    order = v.numbers();
    if (v.given("seed"))
      throw UsageError(fmt::format("{}: an order and a seed cannot be combined", name));
  }
  return ranks_from_order(order, n, name);
}

std::optional<Lengths> length_of_order(const MaskValues& v) {
  const auto n = static_cast<Index>(v.numbers().size());
  return n == 0 ? std::nullopt : std::optional(Lengths{n, n});
}

const MaskParameter kOrder{"order", MaskParameterKind::kList, 0.0};
const MaskParameter kSeed{"seed", MaskParameterKind::kSeed, 0.0};

const MaskKind kPermContent{
    "perm_content",
    {kOrder, kSeed},
    "rank(j) ≤ rank(i)",
    "XLNet's content stream, Yang et al. 2019, arXiv:1906.08237; order: "
    "positions by rank, or seed=N",
    "n(n+1)/2",
    "perm_content(seed=3)",
    [](const MaskValues& v, Lengths l) {
      const auto ranks = ranks_of(v, "perm_content", l);
      return rank_order(ranks, ranks, 0);
    },
    [](const MaskValues&, Index n) { return as_unsigned(n) * as_unsigned(n + 1) / 2; },
    Fits::kSquare,
    length_of_order};
const MaskRegistration kPermContentRegistration{kPermContent};

const MaskKind kPermQuery{
    "perm_query",
    {kOrder, kSeed},
    "rank(j) < rank(i)",
    "XLNet's query stream, Yang et al. 2019, arXiv:1906.08237; order: positions by rank, or seed=N",
    "n(n−1)/2",
    "perm_query(seed=3)",
    [](const MaskValues& v, Lengths l) {
      const auto ranks = ranks_of(v, "perm_query", l);
      return rank_order(ranks, ranks, 1);
    },
    [](const MaskValues&, Index n) { return n == 0 ? 0 : as_unsigned(n) * as_unsigned(n - 1) / 2; },
    Fits::kSquare,
    length_of_order};
const MaskRegistration kPermQueryRegistration{kPermQuery};

const MaskKind kXlnet{
    "xlnet",
    {kSeed,
     {"predict", MaskParameterKind::kCount, 0.0},
     {"perm_size", MaskParameterKind::kCount, 0.0},
     {"alpha", MaskParameterKind::kCount, 6.0, 1},
     {"beta", MaskParameterKind::kCount, 1.0, 1}},
    "not (self_rank(i) ≤ rank(j) and j selected); unselected tokens have rank −1",
    "XLNet's _local_perm with partial prediction, arXiv:1906.08237; predict: number of selected "
    "positions [n/6, rounded]",
    "",
    "xlnet(3)",
    [](const MaskValues& v, Lengths l) {
      PermutationRequest request;
      request.length = l.queries;
      request.seed = v.seed("seed");
      request.perm_size = v.count("perm_size");
      request.selection.predict = v.given("predict") ? v.count("predict") : (l.queries + 3) / 6;
      request.selection.alpha = v.count("alpha");
      request.selection.beta = v.count("beta");
      if (request.selection.predict > l.queries) {
        throw UsageError(fmt::format("xlnet: predict is {}, expected at most the length {}",
                                     request.selection.predict, l.queries));
      }
      return xlnet_permutation(request).mask();
    },
    nullptr,
    Fits::kSquare};
const MaskRegistration kXlnetRegistration{kXlnet};

const MaskKind kXlnetHf{
    "xlnet_hf",
    {kSeed},
    "not (perm(i) ≤ perm(j) and j selected); unselected tokens have −1",
    "transformers' DataCollatorForPermutationLanguageModeling; both halves share one order",
    "",
    "xlnet_hf(3)",
    [](const MaskValues& v, Lengths l) {
      if (l.queries % 2 != 0) {
        throw UsageError(fmt::format(
            "xlnet_hf: length {}, expected an even length, as in transformers", l.queries));
      }
      return xlnet_hf_permutation(l.queries, v.seed("seed")).mask();
    },
    nullptr,
    Fits::kSquare};
const MaskRegistration kXlnetHfRegistration{kXlnetHf};

const MaskKind kXlnetOrder{"xlnet_order",
                           {{"order", MaskParameterKind::kList}},
                           "j is not listed, or listed before i",
                           "partial prediction with an explicit order: targets by rank; i@1 also "
                           "reads itself ([SEP]), i@2 is visible to all",
                           "",
                           "xlnet_order(5,0@1,9,2)",
                           [](const MaskValues& v, Lengths l) {
                             const auto n = static_cast<std::size_t>(l.queries);
                             PermutationDraw draw;
                             draw.rank.assign(n, -1);
                             draw.self_rank.assign(n, 0);
                             draw.hidden.assign(n, false);
                             Index rank = 0;
                             for (const ListItem& item : v.list()) {
                               const auto at = static_cast<std::size_t>(item.a);
                               if (item.to || item.at.value_or(1) < 1 || item.at.value_or(1) > 2 ||
                                   at >= n || draw.rank[at] >= 0) {
                                 throw UsageError(
                                     fmt::format("xlnet_order: position {}, expected each position "
                                                 "once, below {}, optionally with @1 or @2",
                                                 item.a, n));
                               }
                               draw.rank[at] = rank;
                               draw.self_rank[at] = item.at == 1 ? rank + 1 : rank;
                               draw.hidden[at] = item.at != 2;
                               ++rank;
                             }
                             return draw.mask();
                           },
                           nullptr,
                           Fits::kSquare};
const MaskRegistration kXlnetOrderRegistration{kXlnetOrder};

const MaskKind kDisco{"disco",
                      {kSeed},
                      "j ∈ S(i), a random subset of the others of random size 1 … n−1",
                      "DisCo, Kasai et al. 2020, arXiv:2001.05136",
                      "",
                      "disco(1)",
                      [](const MaskValues& v, Lengths l) {
                        const Index n = l.queries;
                        BitMatrix bits(n, n);
                        for (Index i = 0; i < n && n > 1; ++i) {
                          throw_if_interrupted();
                          Draw draw(v.seed("seed"), "mask disco", as_unsigned(i));
                          const std::vector<bool> others =
                              random_subset(n - 1, 1 + draw.below(n - 1), draw);
                          for (Index j = 0; j < n - 1; ++j) {
                            if (others[static_cast<std::size_t>(j)]) bits.set(i, j < i ? j : j + 1);
                          }
                        }
                        return from_bits(std::move(bits));
                      },
                      nullptr,
                      Fits::kSquare,
                      nullptr,
                      Open::kSeed};
const MaskRegistration kDiscoRegistration{kDisco};

const MaskKind kRandom{
    "random",
    {{"p", MaskParameterKind::kShare}, kSeed},
    "each pair independently with probability p",
    "random baseline",
    "about p·n²",
    "random(0.3,1)",
    [](const MaskValues& v, Lengths l) { return random_pairs(l, v.share("p"), v.seed("seed")); }};
const MaskRegistration kRandomRegistration{kRandom};

}  // namespace

}  // namespace masque::mask
