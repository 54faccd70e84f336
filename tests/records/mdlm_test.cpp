// Masked diffusion: rates, what they hide, and the clean half.
#include "records/mdlm.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "records/undo.hpp"
#include "support/message.hpp"

namespace masque::records {
namespace {

using test::contains;
using test::message_of;

constexpr TokenId kHidden = 4;

TokenTable small_table() {
  TokenTable tokens;
  tokens.size = 1000;
  tokens.mask = kHidden;
  tokens.special.assign(5, 1);
  return tokens;
}

/// [2] ordinary … [3].
Record text(std::uint64_t number, std::size_t n) {
  Record record;
  record.number = number;
  record.ids.push_back(2);
  for (std::size_t i = 0; i + 2 < n; ++i)
    record.ids.push_back(static_cast<TokenId>(5 + (number * 31 + i * 17) % 995));
  record.ids.push_back(3);
  return record;
}

Record hidden(const MdlmOptions& options, Record record, Tally& tally) {
  Scratch scratch;
  make_mdlm(options, small_table())->apply(record, scratch, tally);
  return record;
}

TEST_CASE("rates of a batch and of blocks are spread evenly, and uniform over batches") {
  const MdlmOptions options{.batch_size = 16, .seed = 3};
  const MdlmRates rates(options);
  double sum = 0;
  double squares = 0;
  constexpr std::uint64_t kBatches = 4000;
  for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
    std::vector<double> t;
    for (std::uint64_t i = 0; i < 16; ++i) {
      Record record;
      record.number = batch * 16 + i;
      t.push_back(rates.of(record, 1).front());
    }
    std::ranges::sort(t);
    for (std::size_t i = 0; i < 16; ++i) {
      REQUIRE(t[i] > 0.001);
      REQUIRE(t[i] <= 1);
      if (i > 0) REQUIRE(t[i] - t[i - 1] == doctest::Approx(0.999 / 16).epsilon(1e-9));
    }
    sum += t[0];
    squares += t[0] * t[0];
  }
  // The least of a batch is uniform in the first sixteenth.
  const double width = 0.999 / 16;
  const double mean = sum / kBatches - 0.001;
  CHECK(std::abs(mean - width / 2) < 4 * width / std::sqrt(12.0 * kBatches));
  CHECK(squares / kBatches - (mean + 0.001) * (mean + 0.001) ==
        doctest::Approx(width * width / 12).epsilon(0.1));

  Record record = text(5, 40);
  std::vector<double> blocks = rates.of(record, 5);
  std::ranges::sort(blocks);
  for (std::size_t k = 1; k < 5; ++k)
    CHECK(blocks[k] - blocks[k - 1] == doctest::Approx(0.999 / 5).epsilon(1e-9));
  // Of a number and an epoch, or of a place alone.
  const double first = rates.of(record, 1).front();
  record.epoch = 1;
  CHECK(rates.of(record, 1).front() != first);
  record.place = 5;
  CHECK(rates.of(record, 1).front() == first);
  record.place = 37;
  CHECK(rates.of(record, 1).front() != first);
}

TEST_CASE("a token is hidden with the rate of its record, its weight is one over it") {
  Tally tally;
  double weight = 0;
  for (std::uint64_t number = 0; number < 4096; ++number) {
    const Record clean = text(number, 34);
    const Record found = hidden({.batch_size = 32, .seed = 1}, clean, tally);
    REQUIRE(found.weights.size() == 34);
    CHECK_FALSE(found.mask);
    double rate = 0;
    for (std::size_t i = 0; i < 34; ++i) {
      if (found.labels.values[i] == kNoLabel) {
        REQUIRE(found.ids[i] == clean.ids[i]);
        REQUIRE(found.weights[i] == 0);
        continue;
      }
      REQUIRE(found.ids[i] == kHidden);
      REQUIRE(found.labels.values[i] == clean.ids[i]);
      REQUIRE(clean.ids[i] >= 5);
      if (rate > 0) REQUIRE(found.weights[i] == rate);
      rate = found.weights[i];
      weight += rate;
    }
  }
  CHECK(tally.ordinary == 4096 * 32);
  CHECK(tally.masked == tally.selected);
  // E[t] = 0.5005, and E[1/t · hidden] = 1.
  const auto n = static_cast<double>(tally.ordinary);
  CHECK(static_cast<double>(tally.selected) / n == doctest::Approx(0.5005).epsilon(0.01));
  CHECK(weight / n == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("blocks: a noised half, then the clean one, which undo takes away") {
  Tally tally;
  const Record clean = text(7, 22);
  const Record found = hidden({.batch_size = 4, .block_size = 5, .seed = 2}, clean, tally);
  REQUIRE(found.ids.size() == 44);
  CHECK(*found.mask == "block_diffusion(5)");
  CHECK(has_clean_half(found));
  std::vector<double> rates(5, 0);
  for (std::size_t i = 0; i < 22; ++i) {
    CHECK(found.ids[22 + i] == clean.ids[i]);
    CHECK(found.pos.values[i] == static_cast<std::int32_t>(i));
    CHECK(found.pos.values[22 + i] == static_cast<std::int32_t>(i));
    CHECK(found.labels.values[22 + i] == kNoLabel);
    if (found.labels.values[i] == kNoLabel) continue;
    CHECK(found.labels.values[i] == clean.ids[i]);
    double& rate = rates[i / 5];
    if (rate > 0) CHECK(rate == found.weights[i]);
    rate = found.weights[i];
  }
  CHECK(length_problem(found) == std::nullopt);
  CorruptionStats stats;
  stats.see(found, small_table());
  CHECK(stats.tally.ordinary == 20);
  CHECK(stats.tally.selected == tally.selected);
  Record back = found;
  Scratch scratch;
  make_undo()->apply(back, scratch, tally);
  CHECK(back.ids == clean.ids);
  CHECK_FALSE(back.mask);
  CHECK_FALSE(back.pos.present);
  CHECK_FALSE(back.has_weights);
}

TEST_CASE("what masked diffusion cannot take is refused") {
  Tally tally;
  Record labelled = text(0, 8);
  labelled.labels.make(8);
  CHECK(contains(message_of<InputError>([&] { hidden({}, labelled, tally); }), "has labels"));
  Record weighted = text(0, 8);
  weighted.has_weights = true;
  CHECK(contains(message_of<InputError>([&] { hidden({}, weighted, tally); }), "has weights"));
  Record masked = text(0, 8);
  masked.mask = "causal";
  CHECK_NOTHROW(hidden({}, masked, tally));
  CHECK(contains(message_of<InputError>([&] { hidden({.block_size = 2}, masked, tally); }),
                 "record has mask, so"));
  TokenTable none = small_table();
  none.mask = -1;
  CHECK(contains(message_of<UsageError>([&] { make_mdlm({}, none); }), "no mask token"));
  CHECK_THROWS_AS(make_mdlm({.batch_size = 0}, small_table()), UsageError);
}

}  // namespace
}  // namespace masque::records
