#include "train/loss/ranks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/number/bfloat16.hpp"

namespace masque::train {

namespace {

class OneRank final : public Ranks {
 public:
  int count() const override { return 1; }
  int rank() const override { return 0; }
  void sum(std::span<float> /*numbers*/) override {}
  void sum(std::span<double> /*numbers*/) override {}
};

}  // namespace

NameTable<SumPrecision> sum_precision_names() {
  static constexpr std::array<std::pair<std::string_view, SumPrecision>, 2> kNames{
      {{"f32", SumPrecision::kF32}, {"bf16", SumPrecision::kBf16}}};
  return kNames;
}

void Ranks::start_sum(std::span<float> numbers, const SumOptions& options) {
  const bool rounds = options.precision == SumPrecision::kBf16 && count() > 1;
  const auto round = [&] {
    if (rounds) kernel::round_row_to_bf16(numbers.data(), std::ssize(numbers), numbers.data());
  };
  round();
  sum(numbers);
  round();
}

void Ranks::start_gather(std::span<float> numbers) {
  const RankShare own = own_part(*this, std::ssize(numbers));
  // As bits: a sum with 0 would lose the sign of a zero.
  std::vector<double> bits(numbers.size());
  for (Index i = own.begin; i < own.end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    bits[at] = static_cast<double>(std::bit_cast<std::uint32_t>(numbers[at]));
  }
  sum(std::span<double>(bits));
  for (std::size_t i = 0; i < bits.size(); ++i)
    numbers[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]));
}

Index bucket_size(const Ranks& ranks) {
  constexpr Index kAbout = Index{1} << 20;
  const Index part = std::max<Index>(kAbout / ranks.count() / kPartUnit, 1) * kPartUnit;
  return part * ranks.count();
}

RankShare part_of(const Ranks& ranks, int rank, Index size) {
  const Index each = divide_up(size, ranks.count());
  const Index part = round_up(each, kPartUnit);
  return {std::min(size, part * rank), std::min(size, part * (rank + 1))};
}

Ranks& one_rank() {
  static OneRank one;
  return one;
}

double of_first(Ranks& ranks, double value) {
  double number = ranks.is_first() ? value : 0;
  ranks.sum(std::span(&number, 1));
  return number;
}

bool any(Ranks& ranks, bool value) {
  double number = value ? 1 : 0;
  ranks.sum(std::span(&number, 1));
  return number > 0;
}

int of_any(Ranks& ranks, int value) {
  std::vector<double> values(static_cast<std::size_t>(ranks.count()));
  values[static_cast<std::size_t>(ranks.rank())] = value;
  ranks.sum(std::span<double>(values));
  const auto found = std::ranges::find_if(values, [](double v) { return v != 0; });
  return found == values.end() ? 0 : static_cast<int>(*found);
}

void check_alike(Ranks& ranks, std::string_view what, std::string_view text) {
  // As many bits as a double holds.
  const std::string digest = xxh3_of(std::as_bytes(std::span(text))).substr(0, 12);
  std::uint64_t number = 0;
  std::from_chars(digest.data(), digest.data() + digest.size(), number, 16);
  const auto own = static_cast<double>(number);
  if (any(ranks, of_first(ranks, own) != own)) {
    throw InputError(fmt::format(
        "{}: not the same for all processes; expected the same files everywhere", what));
  }
}

RankShare share_of(const Ranks& ranks, Index count) {
  return {count * ranks.rank() / ranks.count(), count * (ranks.rank() + 1) / ranks.count()};
}

RankTotals totals(Ranks& ranks, double weight, Index rows) {
  if (ranks.count() == 1) return {weight, 0};
  const auto own = static_cast<std::size_t>(ranks.rank());
  std::vector<double> numbers(static_cast<std::size_t>(ranks.count()) + 1, 0.0);
  numbers[own] = static_cast<double>(rows);
  numbers.back() = weight;
  ranks.sum(std::span(numbers));
  RankTotals all;
  all.weight = numbers.back();
  for (std::size_t r = 0; r < own; ++r) all.rows_before += static_cast<Index>(numbers[r]);
  return all;
}

}  // namespace masque::train
