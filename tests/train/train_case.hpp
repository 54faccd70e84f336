// Sequences and tokens that the tests of objectives share.
#pragma once

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "mask/bit_matrix.hpp"
#include "train/data/objective.hpp"

namespace masque::test {

inline constexpr TokenId kMaskToken = 4;

/// Ids 0 … 4 are special; even ids begin words.
inline records::TokenTable token_table() {
  records::TokenTable tokens;
  tokens.size = 1000;
  tokens.mask = kMaskToken;
  tokens.special.assign(5, 1);
  tokens.begins_word.assign(1000, 0);
  for (std::size_t i = 0; i < 1000; i += 2) tokens.begins_word[i] = 1;
  return tokens;
}

/// [2] ordinary … [3], n ids in all, ordinary ones from 5.
struct Sequence {
  Sequence(std::uint64_t sequence, std::size_t n) : number(sequence) {
    ids.push_back(2);
    for (std::size_t i = 0; i + 2 < n; ++i) {
      ids.push_back(static_cast<TokenId>(5 + (number * 31 + i * 17) % 995));
    }
    ids.push_back(3);
  }
  train::CorpusItem item() const { return {number, ids, segments}; }

  std::uint64_t number;
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> segments;
};

/// Within 3 standard deviations of a binomial.
inline void check_rate(std::uint64_t found, std::uint64_t of, double p) {
  const double n = static_cast<double>(of);
  CAPTURE(found);
  CAPTURE(of);
  CHECK(std::abs(static_cast<double>(found) - n * p) <= 3 * std::sqrt(n * p * (1 - p)) + 1e-9);
}

inline train::ObjectiveOptions objective_options(std::uint64_t seed = 1) {
  train::ObjectiveOptions options;
  options.seed = seed;
  options.tokens = token_table();
  return options;
}

inline std::unique_ptr<const train::Objective> make_objective(
    std::string_view name, const train::ObjectiveOptions& options = objective_options()) {
  return train::find_objective(name).make(options);
}

/// The cells of a mask; every cell of a full one if there is none.
inline mask::BitMatrix bits_of(const std::optional<mask::Mask>& mask, Index n) {
  return mask::to_bits(mask ? *mask : mask::parse_mask("full").bind({n, n}));
}

inline mask::BitMatrix bits_of(std::string_view expression, Index n) {
  return mask::to_bits(mask::parse_mask(expression).bind({n, n}));
}

}  // namespace masque::test
