#include "mask/permutation.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/builtin.hpp"

namespace masque::mask {

std::vector<Index> ranks_from_order(const std::vector<Index>& order, Index n,
                                    std::string_view name) {
  if (static_cast<Index>(order.size()) != n) {
    throw UsageError(
        fmt::format("{}: an order of {} positions, expected {}", name, order.size(), n));
  }
  std::vector<Index> ranks(order.size(), -1);
  for (std::size_t r = 0; r < order.size(); ++r) {
    if (order[r] >= n || ranks[static_cast<std::size_t>(order[r])] >= 0) {
      throw UsageError(fmt::format("{}: position {} is {}, expected each of 0 to {} once", name,
                                   order[r], order[r] >= n ? "too large" : "listed twice", n - 1));
    }
    ranks[static_cast<std::size_t>(order[r])] = static_cast<Index>(r);
  }
  return ranks;
}

Mask PermutationDraw::mask() const {
  const Lengths lengths{static_cast<Index>(rank.size()), static_cast<Index>(rank.size())};
  // Readable: rank(j) + 1 ≤ self_rank(i), or not hidden.
  return rank_order(self_rank, rank, 1) | ~columns(lengths, hidden);
}

PermutationDraw xlnet_permutation(const PermutationRequest& request) {
  const Index n = request.length;
  const auto size = static_cast<std::size_t>(n);
  std::vector<bool> functional = request.functional;
  functional.resize(size, false);
  Draw spans(request.seed, "xlnet spans");
  PermutationDraw out;
  out.selected = select_spans(n, request.selection, functional, spans);
  const Index block = request.perm_size == 0 ? n : std::min(n, request.perm_size);
  Draw shuffle(request.seed, "xlnet order");
  std::vector<Index> order = random_order(block, shuffle);
  out.rank.resize(size);
  out.self_rank.resize(size);
  out.hidden.resize(size);
  for (Index i = 0; i < n; ++i) {
    if (request.own_orders && i > 0 && i % block == 0) order = random_order(block, shuffle);
    const auto at = static_cast<std::size_t>(i);
    const bool ordinary = !out.selected[at] && !functional[at];
    const bool target = out.selected[at] && !functional[at];
    out.rank[at] = ordinary ? -1 : i / block * block + order[static_cast<std::size_t>(i % block)];
    out.self_rank[at] = target ? out.rank[at] : out.rank[at] + 1;
    out.hidden[at] = !ordinary;
  }
  return out;
}

PermutationDraw xlnet_hf_permutation(Index length, std::uint64_t seed,
                                     const std::vector<bool>& functional) {
  MASQUE_CHECK(length % 2 == 0);
  if (length == 0) return {};
  const auto size = static_cast<std::size_t>(length);
  std::vector<bool> special = functional;
  special.resize(size, false);
  Draw spans(seed, "xlnet hf spans");
  PermutationDraw out;
  out.selected = select_spans_hf(length, special, spans);
  Draw shuffle(seed, "xlnet hf order");
  const Index half = length / 2;
  const std::vector<Index> order = random_order(half, shuffle);
  out.rank.resize(size);
  for (Index i = 0; i < length; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool ordinary = !out.selected[at] && !special[at];
    out.rank[at] = ordinary ? -1 : i / half * half + order[static_cast<std::size_t>(i % half)];
  }
  out.self_rank = out.rank;
  out.hidden = out.selected;
  return out;
}

}  // namespace masque::mask
