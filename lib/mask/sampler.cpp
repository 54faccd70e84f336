#include "mask/sampler.hpp"

#include <algorithm>

namespace masque::mask {

std::vector<bool> select_spans(Index n, const SpanSelection& selection,
                               const std::vector<bool>& blocked, Draw& draw) {
  std::vector<bool> selected(static_cast<std::size_t>(n), false);
  std::vector<double> chances;
  double total = 0;
  for (Index length = 1; length <= selection.longest; ++length) {
    total += 1.0 / static_cast<double>(length);
    chances.push_back(total);
  }
  Index count = 0;
  const auto select = [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    if (selected[at] || blocked[at]) return;
    selected[at] = true;
    ++count;
  };
  for (Index at = 0; selection.longest > 0 && at < n && count < selection.predict;) {
    const double u = draw.uniform() * total;
    Index span = 1 + (std::upper_bound(chances.begin(), chances.end(), u) - chances.begin());
    span = std::min({span, selection.longest, selection.predict - count});
    const Index context = span * selection.alpha / selection.beta;
    const Index left = draw.below(std::max<Index>(1, context));
    const Index begin = at + left;
    const Index end = begin + span;
    if (end >= n) break;
    for (Index i = begin; i < end; ++i) select(i);
    at = end + (context - left);
  }
  std::vector<Index> rest;
  for (Index i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!selected[at] && !blocked[at]) rest.push_back(i);
  }
  for (std::size_t i = 0; i < rest.size() && count < selection.predict; ++i) {
    std::swap(rest[i],
              rest[i + static_cast<std::size_t>(draw.below(static_cast<Index>(rest.size() - i)))]);
    select(rest[i]);
  }
  return selected;
}

std::vector<bool> select_spans_hf(Index n, const std::vector<bool>& blocked, Draw& draw) {
  std::vector<bool> selected(static_cast<std::size_t>(n), false);
  for (Index at = 0; at < n;) {
    const Index span = 1 + draw.below(5);
    const Index context = 6 * span;
    const Index begin = at + draw.below(context - span + 1);
    for (Index i = begin; i < std::min(begin + span, n); ++i) {
      selected[static_cast<std::size_t>(i)] = !blocked[static_cast<std::size_t>(i)];
    }
    at += context;
  }
  return selected;
}

}  // namespace masque::mask
