#include <bit>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::nn {

std::vector<double> alibi_slopes(Index num_heads) {
  MASQUE_CHECK(num_heads > 0);
  const auto power = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(num_heads)));
  std::vector<double> slopes;
  slopes.reserve(static_cast<std::size_t>(num_heads));
  const auto slope = [](Index h, Index heads) {
    return std::exp2(-8 * static_cast<double>(h) / static_cast<double>(heads));
  };
  for (Index h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  // The paper's code: the rest are the odd ones of twice as many heads.
  for (Index h = 1; static_cast<Index>(slopes.size()) < num_heads; h += 2) {
    slopes.push_back(slope(h, 2 * power));
  }
  return slopes;
}

template <class T>
std::unique_ptr<ScoreBias<T>> alibi_bias(Index num_heads, PositionIds positions) {
  return offset_bias<T>(
      [slopes = alibi_slopes(num_heads)](Index head, Index offset) {
        const double slope = slopes[static_cast<std::size_t>(head)];
        return static_cast<T>(-slope * static_cast<double>(std::abs(offset)));
      },
      positions);
}

template <class T>
std::unique_ptr<PositionTerms<T>> alibi_terms(Index num_heads, PositionIds positions) {
  return std::make_unique<OffsetTerms<T>>(alibi_bias<T>(num_heads, positions), positions);
}

template std::unique_ptr<ScoreBias<float>> alibi_bias(Index, PositionIds);
template std::unique_ptr<ScoreBias<double>> alibi_bias(Index, PositionIds);
template std::unique_ptr<ScoreBias<std::complex<double>>> alibi_bias(Index, PositionIds);
template std::unique_ptr<PositionTerms<float>> alibi_terms(Index, PositionIds);
template std::unique_ptr<PositionTerms<double>> alibi_terms(Index, PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> alibi_terms(Index, PositionIds);

}  // namespace masque::nn
