// Names with lists: the list is read off the mask, and the mask that it makes is then compared like
// any other candidate, so a wrong guess costs nothing.
#include <algorithm>

#include <fmt/format.h>

#include "mask/candidates.hpp"
#include "mask/report.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

namespace {

/// Longest list worth printing.
constexpr std::size_t kMaxList = 4096;

std::vector<std::string> texts(const std::vector<Index>& numbers) {
  std::vector<std::string> out;
  out.reserve(numbers.size());
  for (const Index number : numbers) out.push_back(std::to_string(number));
  return out;
}

/// 0, 1, 2, 5 as "0-2", "5".
std::vector<std::string> ranges(const std::vector<Index>& numbers) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i >= 3) {
      out.push_back(fmt::format("{}-{}", numbers[i], numbers[end - 1]));
    } else {
      for (std::size_t at = i; at < end; ++at) out.push_back(std::to_string(numbers[at]));
    }
    i = end;
  }
  return out;
}

/// First and last visible key of a row; {0, 0} if there is none.
Range span_of(const Mask& mask, Index row) {
  const Index keys = mask.lengths().keys;
  Range span{-1, 0};
  for (Index k = 0; k < keys; k += 64) {
    const int n = static_cast<int>(std::min<Index>(64, keys - k));
    const std::uint64_t bits = mask.bits(row, k, n);
    if (bits == 0) continue;
    if (span.begin < 0) span.begin = k + __builtin_ctzll(bits);
    span.end = k + 64 - __builtin_clzll(bits);
  }
  return span.begin < 0 ? Range{0, 0} : span;
}

/// Lengths of the finest runs that no visible pair leaves.
std::vector<Index> finest_documents(const Mask& mask) {
  const Index n = mask.lengths().queries;
  // reach[i]: the farthest position that a pair from i or before binds into one run.
  std::vector<Index> reach(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    const Range span = span_of(mask, i);
    const Index low = span.size() == 0 ? i : std::min(i, span.begin);
    const Index high = span.size() == 0 ? i : std::max(i, span.end - 1);
    reach[static_cast<std::size_t>(low)] = std::max(reach[static_cast<std::size_t>(low)], high);
  }
  std::vector<Index> lengths;
  Index begin = 0;
  Index farthest = 0;
  for (Index i = 0; i < n; ++i) {
    farthest = std::max(farthest, reach[static_cast<std::size_t>(i)]);
    if (farthest > i) continue;
    lengths.push_back(i + 1 - begin);
    begin = i + 1;
  }
  return lengths;
}

/// Lengths of runs from left to right, each as long as its square is all visible (1 at least).
std::vector<Index> greedy_documents(const Mask& mask) {
  const Index n = mask.lengths().queries;
  std::vector<Index> lengths;
  for (Index begin = 0; begin < n;) {
    Index end = begin + 1;
    const auto joins = [&](Index i) {
      for (Index j = begin; j <= i; ++j) {
        if (!mask.allows(i, j) || !mask.allows(j, i)) return false;
      }
      return true;
    };
    while (end < n && joins(end)) ++end;
    lengths.push_back(end - begin);
    begin = end;
  }
  return lengths;
}

/// Positions by n_i, if these are low, low + 1, …
std::vector<Index> order_of(const Mask& mask, Index low) {
  const std::vector<Index> counts = visible_keys(mask);
  std::vector<Index> order(counts.size(), -1);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Index rank = counts[i] - low;
    if (rank < 0 || rank >= static_cast<Index>(order.size())) return {};
    Index& place = order[static_cast<std::size_t>(rank)];
    if (place >= 0) return {};
    place = static_cast<Index>(i);
  }
  return order;
}

/// K-BERT's tree: the sentence is the longest square of visible cells at the start.
std::vector<std::string> branches_of(const Mask& mask) {
  const Index n = mask.lengths().queries;
  Index sentence = n == 0 ? 0 : greedy_documents(mask).front();
  std::vector<std::string> items = {std::to_string(sentence)};
  for (Index begin = sentence; begin < n;) {
    Index head = 0;
    while (head < sentence && !mask.allows(begin, head)) ++head;
    if (head == sentence) return {};
    Index end = begin + 1;
    while (end < n && mask.allows(begin, end)) ++end;
    items.push_back(fmt::format("{}@{}", end - begin, head));
    begin = end;
  }
  return items;
}

/// Longformer's window and global positions.
std::vector<std::string> window_and_globals(const Mask& mask) {
  const Index n = mask.lengths().queries;
  const std::vector<Index> counts = visible_keys(mask);
  std::vector<bool> global(static_cast<std::size_t>(n), false);
  std::vector<std::string> items = {"0"};
  for (Index i = 0; i < n; ++i) {
    if (counts[static_cast<std::size_t>(i)] != n) continue;
    global[static_cast<std::size_t>(i)] = true;
    items.push_back(std::to_string(i));
  }
  if (items.size() == 1) return {};
  Index w = 0;
  for (Index i = 0; i < n; ++i) {
    if (global[static_cast<std::size_t>(i)]) continue;
    for (Index j = i + w + 1; j < n && mask.allows(i, j) && !global[static_cast<std::size_t>(j)];
         ++j) {
      w = j - i;
    }
  }
  items.front() = std::to_string(w);
  return items;
}

std::vector<Index> keys_where(const Mask& mask, bool by_all) {
  std::vector<Index> keys;
  const Mask wanted = by_all ? ~mask : mask;
  const auto [queries, length] = mask.lengths();
  for (Index k = 0; k < length; ++k) {
    const bool none = wanted.cover({0, queries}, {k, k + 1}) == Cover::kEmpty;
    bool any = !none;
    if (any) {  // `cover` may not know
      any = false;
      for (Index q = 0; q < queries && !any; ++q) any = wanted.allows(q, k);
    }
    if (any != by_all) keys.push_back(k);
  }
  return keys;
}

/// XLNet's partial prediction: hidden keys by the number of rows that read them, most first.
std::vector<std::string> hidden_order(const Mask& mask) {
  const Index n = mask.lengths().queries;
  std::vector<std::pair<Index, Index>> order;
  for (Index k = 0; k < n; ++k) {
    Index readers = 0;
    for (Index q = 0; q < n; ++q) readers += mask.allows(q, k) && q != k ? 1 : 0;
    if (readers < n - 1 || !mask.allows(k, k)) order.emplace_back(-readers, k);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> items;
  items.reserve(order.size());
  for (const auto& [readers, k] : order) {
    items.push_back(fmt::format("{}{}", k, mask.allows(k, k) ? "@1" : ""));
  }
  return items;
}

}  // namespace

std::optional<MaskExpression> enclosing_documents(const Mask& mask) {
  if (mask.lengths().queries != mask.lengths().keys) return std::nullopt;
  const std::vector<Index> lengths = finest_documents(mask);
  if (lengths.size() < 2 || lengths.size() > kMaxList) return std::nullopt;
  return named_mask("document", texts(lengths));
}

std::optional<MaskExpression> enclosing_keys(const Mask& mask) {
  const std::vector<Index> keys = keys_where(mask, false);
  if (keys.empty() || static_cast<Index>(keys.size()) == mask.lengths().keys) return std::nullopt;
  if (keys.back() + 1 == static_cast<Index>(keys.size())) {
    return named_mask("pad", {std::to_string(keys.size())});
  }
  const std::vector<std::string> items = ranges(keys);
  return items.size() > kMaxList ? std::nullopt : std::optional(named_mask("keep", items));
}

std::vector<Candidate> listed_candidates(const Mask& mask, const SampledCells& sampling) {
  std::vector<Candidate> found;
  const auto add = [&](std::string_view name, const std::vector<std::string>& items) {
    if (items.empty() || items.size() > kMaxList) return;
    MaskExpression expression = named_mask(name, items);
    const int base = name == "document" ? 100 : 110;
    const int cost = base + 10 * static_cast<int>(items.size());
    const Sketch sketch = sampling.sketch(expression.bind(mask.lengths()));
    found.push_back({std::move(expression), cost, sketch});
  };
  add("keep", ranges(keys_where(mask, false)));
  add("keep", ranges(keys_where(mask, true)));
  if (mask.lengths().queries != mask.lengths().keys || mask.lengths().queries == 0) return found;
  const Mask hidden = ~mask;
  add("document", texts(finest_documents(mask)));
  add("document", texts(greedy_documents(mask)));
  for (const auto& words : {finest_documents(hidden), greedy_documents(hidden)}) {
    add("tta_word", texts(words));
    add("tta_word_l2r", texts(words));
  }
  add("perm_content", texts(order_of(mask, 1)));
  add("perm_query", texts(order_of(mask, 0)));
  add("xlnet_order", hidden_order(mask));
  add("visible", branches_of(mask));
  add("longformer", window_and_globals(mask));
  return found;
}

}  // namespace masque::mask
