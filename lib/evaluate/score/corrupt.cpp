#include "evaluate/score/corrupt.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "mask/bit_matrix.hpp"

namespace masque::evaluate {

namespace {

constexpr std::array<std::pair<std::string_view, TokenNoise>, 4> kNames{
    {{"none", TokenNoise::kNone},
     {"mask", TokenNoise::kMask},
     {"drop", TokenNoise::kDrop},
     {"random", TokenNoise::kRandom}}};

/// What these tokens may read of each other.
mask::Mask part_of_mask(const mask::Mask& mask, std::span<const Index> tokens) {
  if (std::ssize(tokens) == mask.lengths().queries) return mask;
  mask::BitMatrix bits(std::ssize(tokens), std::ssize(tokens));
  for (Index i = 0; i < bits.rows(); ++i) {
    for (Index j = 0; j < bits.columns(); ++j) {
      const auto token = [&](Index at) { return tokens[static_cast<std::size_t>(at)]; };
      if (mask.allows(token(i), token(j))) bits.set(i, j);
    }
  }
  return mask::from_bits(std::move(bits));
}

}  // namespace

NameTable<TokenNoise> token_noise_names() { return kNames; }

std::vector<double> selection_numbers(const Sequence& sequence, std::uint64_t seed,
                                      std::string_view purpose) {
  std::vector<std::uint32_t> words(sequence.ids.size());
  RandomStream(seed, purpose, sequence.number).words(words.size(), words.data());
  std::vector<double> numbers(words.size(), 2);
  for (Index i = sequence.prefix; i < sequence.size() - sequence.suffix; ++i) {
    const auto at = static_cast<std::size_t>(i);
    numbers[at] = static_cast<double>(words[at]) * 0x1p-32;
  }
  return numbers;
}

Corrupted corrupt(const Sequence& sequence, std::span<const double> numbers, double rate,
                  TokenNoise corruption, std::optional<TokenId> mask, const RandomStream& random,
                  Index vocab_size) {
  MASQUE_CHECK(numbers.size() == sequence.ids.size());
  MASQUE_CHECK(corruption != TokenNoise::kMask || mask);
  Corrupted out;
  Sequence& to = out.sequence;
  std::vector<Index> left;
  to.number = sequence.number;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool selected = numbers[i] < rate;
    const auto row = static_cast<Index>(i);
    if (selected) {
      out.selected.push_back(row);
      if (corruption == TokenNoise::kDrop) continue;
    } else if (numbers[i] < 1) {
      out.kept.push_back(row);
      out.rows.push_back(to.size());
    }
    TokenId id = sequence.ids[i];
    if (selected && corruption == TokenNoise::kMask) id = *mask;
    if (selected && corruption == TokenNoise::kRandom) {
      id = static_cast<TokenId>(random.block(i)[0] % static_cast<std::uint64_t>(vocab_size));
    }
    to.ids.push_back(id);
    left.push_back(row);
    if (!sequence.segments.empty()) to.segments.push_back(sequence.segments[i]);
    if (!sequence.positions.empty() || corruption == TokenNoise::kDrop) {
      to.positions.push_back(sequence.positions.empty() ? row : sequence.positions[i]);
    }
  }
  if (sequence.mask) to.mask = part_of_mask(*sequence.mask, left);
  return out;
}

}  // namespace masque::evaluate
