#include "train/sample.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "kernel/elementary.hpp"

namespace masque::train {

template <class T>
TokenId sample_token(std::span<T> logits, double uniform) {
  MASQUE_CHECK(!logits.empty());
  const T largest = *std::ranges::max_element(logits);
  for (T& x : logits) {
    if constexpr (std::is_same_v<T, float>) {
      x = kernel::fast_exp_negative(x - largest);
    } else {
      x = std::exp(x - largest);
    }
  }
  double total = 0;
  for (const T x : logits) total += static_cast<double>(x);
  const double wanted = uniform * total;
  double sum = 0;
  std::size_t token = 0;
  for (; token + 1 < logits.size(); ++token) {
    sum += static_cast<double>(logits[token]);
    if (sum > wanted) break;
  }
  return static_cast<TokenId>(token);
}

template TokenId sample_token(std::span<float>, double);
template TokenId sample_token(std::span<double>, double);

}  // namespace masque::train
