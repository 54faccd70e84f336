#include "evaluate/score/likelihood_bound.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

std::vector<HiddenTokens> draw_hidden(Index begin, Index end, Index block_size, Index draws,
                                      Draw& draw) {
  MASQUE_CHECK(begin <= end && block_size >= 0 && draws >= 1);
  std::vector<HiddenTokens> out(static_cast<std::size_t>(draws));
  while (begin < end) {
    const Index last = block_size == 0 ? end : std::min(end, (begin / block_size + 1) * block_size);
    const Index n = last - begin;
    const double start = draw.uniform();
    for (Index k = 0; k < draws; ++k) {
      const double share = (static_cast<double>(k) + start) / static_cast<double>(draws);
      const Index l = std::min(n, 1 + static_cast<Index>(share * static_cast<double>(n)));
      const std::vector<bool> hidden = random_subset(n, l, draw);
      HiddenTokens& one = out[static_cast<std::size_t>(k)];
      for (Index i = 0; i < n; ++i) {
        if (!hidden[static_cast<std::size_t>(i)]) continue;
        one.places.push_back(begin + i);
        one.weights.push_back(static_cast<double>(n) / static_cast<double>(l));
      }
    }
    begin = last;
  }
  return out;
}

double variance_of_mean(const std::vector<double>& values) {
  MASQUE_CHECK(values.size() >= 2);
  Moments moments;
  for (const double value : values) moments.add(value);
  const auto n = static_cast<double>(values.size());
  return moments.sum_squares / (n - 1) / n;
}

}  // namespace masque::evaluate
