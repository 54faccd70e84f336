// Corruptions: their statistics, what they keep, and that they depend on nothing but record, epoch
// and seed.
#include "records/corruption.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "mask/expression.hpp"
#include "mask/flow.hpp"
#include "records/bart.hpp"
#include "records/drop.hpp"
#include "records/electra.hpp"
#include "records/mlm.hpp"
#include "records/pack.hpp"
#include "records/perm.hpp"
#include "records/prefix.hpp"
#include "records/undo.hpp"
#include "support/message.hpp"

namespace masque::records {
namespace {

using test::message_of;

constexpr TokenId kMask = 4;

/// Ids 0 … 4 are special; even ids begin words.
TokenTable table() {
  TokenTable tokens;
  tokens.size = 1000;
  tokens.mask = kMask;
  tokens.special.assign(5, 1);
  tokens.begins_word.assign(1000, 0);
  for (std::size_t i = 0; i < 1000; i += 2) tokens.begins_word[i] = 1;
  return tokens;
}

/// [2] ordinary … [3], with ordinary ids from 5.
Record sample(std::uint64_t number, std::size_t n) {
  Record record;
  record.number = number;
  record.ids.push_back(2);
  for (std::size_t i = 0; i + 2 < n; ++i) {
    record.ids.push_back(static_cast<TokenId>(5 + (number * 31 + i * 17) % 995));
  }
  if (n > 1) record.ids.push_back(3);
  return record;
}

Tally run(const Corruption& corruption, std::size_t records, std::size_t n) {
  Tally tally;
  Scratch scratch;
  for (std::size_t i = 0; i < records; ++i) {
    Record record = sample(i, n);
    corruption.apply(record, scratch, tally);
  }
  return tally;
}

/// Within 3 standard deviations of a binomial.
void check_rate(std::uint64_t found, std::uint64_t of, double p) {
  const double n = static_cast<double>(of);
  CHECK(std::abs(static_cast<double>(found) - n * p) <= 3 * std::sqrt(n * p * (1 - p)) + 1e-9);
}

TEST_CASE("dropping keeps positions and is undone") {
  for (const std::size_t n : {1UL, 2UL, 3UL, 17UL, 200UL}) {
    const auto drop = make_drop({.rate = 0.3, .seed = 5}, table());
    const auto undo = make_undo();
    Tally tally;
    Scratch scratch;
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Record before = sample(i, n);
      Record record = before;
      drop->apply(record, scratch, tally);
      REQUIRE(record.pos.values.size() == record.size());
      REQUIRE(record.size() >= 1);
      for (std::size_t t = 0; t < record.size(); ++t) {
        REQUIRE(record.ids[t] == before.ids[static_cast<std::size_t>(record.pos.values[t])]);
      }
      undo->apply(record, scratch, tally);
      REQUIRE(record.ids == before.ids);
      REQUIRE_FALSE(record.pos.present);
      REQUIRE_FALSE(record.has_dropped);
    }
  }
}

TEST_CASE("realised rates are the nominal ones within three standard deviations") {
  const Tally drop = run(*make_drop({.rate = 0.15}, table()), 2000, 128);
  CHECK(drop.ordinary == 2000 * 126);
  check_rate(drop.dropped, drop.ordinary, 0.15);
  const Tally mlm = run(*make_mlm({}, table()), 2000, 128);
  check_rate(mlm.selected, mlm.ordinary, 0.15);
  check_rate(mlm.masked, mlm.selected, 0.8);
  check_rate(mlm.kept, mlm.selected, 0.1);
  check_rate(mlm.random, mlm.selected, 0.1);
  const Tally mae = run(*make_mae({.ratio = 0.75}, table()), 100, 102);
  CHECK(mae.dropped == 100 * 75);
  MlmOptions exact;
  exact.selection.choice = Choice::kExact;
  CHECK(run(*make_mlm(exact, table()), 100, 102).selected == 100 * 15);
  const Tally perm = run(*make_perm({}, table()), 300, 512);
  CHECK(perm.selected == 300 * 85);
  const Tally hf = run(*make_perm({.hf = true}, table()), 2000, 512);
  // The expectation between [CLS] and [SEP], and the deviation of a record's share.
  const double share = static_cast<double>(hf.selected) / static_cast<double>(hf.ordinary);
  CHECK(std::abs(share - 0.16680852) <= 3 * 0.002704 / std::sqrt(2000));
}

TEST_CASE("geometric spans have the mean of their distribution") {
  MlmOptions options;
  options.selection.choice = Choice::kSpan;
  options.selection.rate = 0.02;  // so few that they seldom meet
  const auto mlm = make_mlm(options, table());
  std::uint64_t spans = 0;
  std::uint64_t tokens = 0;
  Tally tally;
  Scratch scratch;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Record record = sample(i, 2000);
    mlm->apply(record, scratch, tally);
    bool inside = false;
    for (const std::int32_t label : record.labels.values) {
      const bool selected = label != kNoLabel;
      spans += selected && !inside ? 1U : 0U;
      tokens += selected ? 1U : 0U;
      inside = selected;
    }
  }
  // p = 0.2 within 1 … 10; the last span of a record is cut at the goal.
  double mean = 0;
  double total = 0;
  for (int k = 1; k <= 10; ++k) {
    mean += k * std::pow(0.8, k - 1);
    total += std::pow(0.8, k - 1);
  }
  CHECK(static_cast<double>(tokens) / static_cast<double>(spans) ==
        doctest::Approx(mean / total).epsilon(0.06));
}

TEST_CASE("whole words are selected whole, by marks and by a field") {
  Tally tally;
  Scratch scratch;
  MlmOptions options;
  options.selection.unit = Unit::kWord;
  options.selection.rate = 0.3;
  const auto by_mark = make_mlm(options, table());
  options.selection.unit = Unit::kWords;
  const auto by_field = make_mlm(options, table());
  for (std::uint64_t i = 0; i < 100; ++i) {
    Record record = sample(i, 60);
    const Record before = record;
    by_mark->apply(record, scratch, tally);
    for (std::size_t t = 2; t + 1 < record.size(); ++t) {
      if (before.ids[t] % 2 == 0) continue;  // goes on with the word before
      REQUIRE((record.labels.values[t] == kNoLabel) == (record.labels.values[t - 1] == kNoLabel));
    }
    Record chinese = sample(i, 10);
    chinese.words.present = true;
    chinese.words.values = {0, 1, 1, 2, 3, 3, 3, 4, 4, 5};
    by_field->apply(chinese, scratch, tally);
    const auto& labels = chinese.labels.values;
    for (const auto& [a, b] :
         std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {4, 5}, {5, 6}, {7, 8}}) {
      REQUIRE((labels[a] == kNoLabel) == (labels[b] == kNoLabel));
    }
  }
  Record plain = sample(1, 10);
  CHECK(message_of<InputError>([&] {
          by_field->apply(plain, scratch, tally);
        }).starts_with("no words"));
}

TEST_CASE("chi-squared: tails of one to five degrees of freedom, shares of 0") {
  // Quantiles of 0.95, as every table has them.
  const std::vector<double> quantiles = {3.841458820694124, 5.991464547107979, 7.814727903251179,
                                         9.487729036781154, 11.070497693516351};
  for (std::size_t i = 0; i < quantiles.size(); ++i)
    CHECK(chi_squared_tail(quantiles[i], static_cast<int>(i) + 1) == doctest::Approx(0.05));
  CHECK(chi_squared_tail(0, 1) == 1);
  CHECK(chi_squared_tail(0, 2) == 1);
  const ChiSquared even = chi_squared({30, 50, 20}, {0.4, 0.4, 0.2});
  CHECK(even.statistic == doctest::Approx(5));
  CHECK(even.degrees == 2);
  CHECK(even.p == doctest::Approx(std::exp(-2.5)));
  const ChiSquared without = chi_squared({60, 40, 0}, {0.5, 0.5, 0});
  CHECK(without.statistic == doctest::Approx(4));
  CHECK(without.degrees == 1);
  CHECK(without.p == doctest::Approx(0.0455002638963584));
  CHECK(std::isinf(chi_squared({1, 2}, {1, 0}).statistic));
  CHECK(chi_squared({1, 2}, {1, 0}).p == 0);
  CHECK(chi_squared({3, 0}, {1, 0}).p == 1);
}

TEST_CASE("special tokens stay, labels say what was there, and undo restores it") {
  Tally tally;
  Scratch scratch;
  MlmOptions all;
  all.selection.rate = 1;
  all.mask = 0.5;
  all.keep = 0.25;
  all.random = 0.25;
  const auto mlm = make_mlm(all, table());
  for (const std::size_t n : {1UL, 2UL, 3UL, 50UL}) {
    const Record before = sample(7, n);
    Record record = before;
    mlm->apply(record, scratch, tally);
    CHECK(record.ids.front() == 2);
    CHECK(record.labels.values.front() == kNoLabel);
    for (std::size_t i = 1; i + 1 < n; ++i) CHECK(record.labels.values[i] == before.ids[i]);
    make_undo()->apply(record, scratch, tally);
    CHECK(record.ids == before.ids);
    CHECK_FALSE(record.labels.present);
  }
  Record labelled = sample(1, 5);
  labelled.labels.make(5);
  CHECK_THROWS_AS(mlm->apply(labelled, scratch, tally), InputError);
}

TEST_CASE("epochs differ, static masks repeat, a fixed selection keeps its positions") {
  Scratch scratch;
  Tally tally;
  const auto labels = [&](const Corruption& corruption, std::uint64_t epoch) {
    Record record = sample(3, 200);
    record.epoch = epoch;
    corruption.apply(record, scratch, tally);
    return std::pair(record.labels.values, record.ids);
  };
  const auto dynamic = make_mlm({}, table());
  CHECK(labels(*dynamic, 0) == labels(*dynamic, 0));
  CHECK(labels(*dynamic, 0) != labels(*dynamic, 1));
  CHECK(labels(*dynamic, 70) != labels(*dynamic, 71));
  const auto repeated = make_mlm({.draws = 2}, table());
  CHECK(labels(*repeated, 0) == labels(*repeated, 2));
  CHECK(labels(*repeated, 0) != labels(*repeated, 1));
  const auto fixed = make_mlm({.fixed_selection = true}, table());
  CHECK(labels(*fixed, 0).first == labels(*fixed, 5).first);
  CHECK(labels(*fixed, 0).second != labels(*fixed, 5).second);
}

TEST_CASE("similar tokens stand in for the mask where there are any") {
  MlmOptions options;
  options.selection.rate = 1;
  options.mask = 1;
  options.keep = options.random = 0;
  options.similar.resize(900);
  for (std::size_t i = 5; i < 900; ++i) options.similar[i] = {static_cast<TokenId>(i), 7};
  Scratch scratch;
  Tally tally;
  Record record = sample(3, 100);
  const Record before = record;
  make_mlm(options, table())->apply(record, scratch, tally);
  for (std::size_t i = 1; i + 1 < 100; ++i) {
    if (before.ids[i] < 900) CHECK((record.ids[i] == 7 || record.ids[i] == before.ids[i]));
    CHECK(record.ids[i] != kMask);
  }
}

/// Whether a target's query of `record`, in two streams of 4 layers, depends on its own token.
bool targets_leak(const Record& record) {
  const auto n = static_cast<Index>(record.size());
  const mask::Mask query = mask::parse_mask(*record.mask).bind({n, n});
  const mask::Mask self = mask::parse_mask("diagonal").bind({n, n});
  mask::FlowRequest flow{.layers = std::vector<mask::Mask>(4, query),
                         .content = std::vector<mask::Mask>(4, query | self),
                         .query = mask::QueryStart::kPosition};
  for (Index i = 0; i < n; ++i) {
    if (record.labels.values[static_cast<std::size_t>(i)] == kNoLabel) continue;
    flow.forbidden.push_back({{i, i + 1}, {i, i + 1}});
  }
  return mask::follow_flow(flow).leak.has_value();
}

TEST_CASE("permutations are clean: no target reads itself or a later one") {
  Scratch scratch;
  Tally tally;
  // XLNet's own rule only: with transformers' the content stream holds [MASK] at the targets.
  const auto perm = make_perm({.predict = 0.3, .seed = 9}, table());
  for (const std::size_t n : {2UL, 12UL, 31UL, 40UL}) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      Record record = sample(i, n);
      perm->apply(record, scratch, tally);
      REQUIRE_FALSE(targets_leak(record));
    }
  }
  for (const std::size_t n : {2UL, 12UL, 40UL}) {
    Record record = sample(3, n);
    const Record before = record;
    make_perm({.hf = true}, table())->apply(record, scratch, tally);
    for (std::size_t t = 0; t < n; ++t) {
      const bool target = record.labels.values[t] != kNoLabel;
      CHECK(record.ids[t] == (target ? kMask : before.ids[t]));
      if (target) CHECK(record.labels.values[t] == before.ids[t]);
    }
  }
  Record odd = sample(1, 7);
  CHECK_THROWS_AS(make_perm({.alpha = 0}, table()), UsageError);
  CHECK_THROWS_AS(make_perm({.beta = 0}, table()), UsageError);
  CHECK_THROWS_AS(make_perm({.perm_size = std::uint64_t{1} << 60}, table()), UsageError);
  CHECK_THROWS_AS(make_perm({.hf = true}, table())->apply(odd, scratch, tally), InputError);
}

TEST_CASE("segments of a permutation read all of the earlier ones and none of the later ones") {
  Scratch scratch;
  Tally tally;
  const auto free = make_perm({.predict = 0.5, .perm_size = 10, .seed = 9}, table());
  const auto blocks =
      make_perm({.predict = 0.5, .perm_size = 10, .causal_blocks = true, .seed = 9}, table());
  Index others = 0;  // pairs of later blocks that the shared order has otherwise
  for (const Index n : {7, 20, 24}) {
    CAPTURE(n);
    Record record = sample(4, static_cast<std::size_t>(n));
    Record same = record;
    free->apply(record, scratch, tally);
    blocks->apply(same, scratch, tally);
    CHECK(record.labels.values == same.labels.values);
    CHECK_FALSE(targets_leak(same));
    const mask::Mask all = mask::parse_mask(*record.mask).bind({n, n});
    const mask::Mask some = mask::parse_mask(*same.mask).bind({n, n});
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        if (j / 10 != i / 10) CHECK(some.allows(i, j) == (j < i));
        // The first block has the first order drawn, which the others share without the option.
        if (i < 10 && j < 10) CHECK(some.allows(i, j) == all.allows(i, j));
        others += i >= 10 && j / 10 == i / 10 && some.allows(i, j) != all.allows(i, j) ? 1 : 0;
      }
    }
  }
  CHECK(others > 0);
  Record none = sample(4, 20);
  make_perm({.predict = 0, .perm_size = 10, .causal_blocks = true}, TokenTable{.size = 1000})
      ->apply(none, scratch, tally);
  CHECK(none.mask == "causal_blocks(10) & (full | ~chunk(10))");
  CHECK_THROWS_AS(make_perm({.causal_blocks = true}, table()), UsageError);
  CHECK_THROWS_AS(make_perm({.hf = true, .perm_size = 4, .causal_blocks = true}, table()),
                  UsageError);
  CHECK_THROWS_AS(make_perm({.hf = true, .no_spans = true}, table()), UsageError);
}

TEST_CASE("targets one by one are as many as in spans, and neighbours as often as at random") {
  Scratch scratch;
  const auto pairs_of = [&](bool no_spans) {
    const auto perm = make_perm({.no_spans = no_spans, .seed = 9}, table());
    Tally tally;
    std::uint64_t pairs = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      Record record = sample(i, 512);
      perm->apply(record, scratch, tally);
      for (std::size_t t = 1; t < 512; ++t) {
        if (record.labels.values[t] != kNoLabel && record.labels.values[t - 1] != kNoLabel) ++pairs;
      }
    }
    CHECK(tally.selected == 300 * 85);
    return static_cast<double>(pairs) / 300;
  };
  // 509 pairs of ordinary neighbours, each with the chance 85/510 · 84/509. The mean of 300 records
  // has a deviation of about 0.2.
  CHECK(std::abs(pairs_of(true) - 85.0 * 84 / 510) < 0.8);
  CHECK(pairs_of(false) > 30);
}

TEST_CASE("the generator's tokens follow its weights, and right guesses count as original") {
  ElectraRecordOptions options;
  options.selection.rate = 0.5;
  options.weights.assign(10, 0);
  options.weights[6] = 3;
  options.weights[9] = 1;
  const auto electra = make_electra(options, table());
  Scratch scratch;
  Tally tally;
  std::uint64_t six = 0;
  std::uint64_t nine = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    Record record = sample(i, 100);
    const Record before = record;
    electra->apply(record, scratch, tally);
    REQUIRE(record.original.values == before.ids);
    for (std::size_t t = 0; t < 100; ++t) {
      REQUIRE(record.labels.values[t] == (record.ids[t] != before.ids[t] ? 1 : 0));
      if (scratch.flags[t] == 0) continue;
      six += record.ids[t] == 6 ? 1U : 0U;
      nine += record.ids[t] == 9 ? 1U : 0U;
    }
    make_undo()->apply(record, scratch, tally);
    REQUIRE(record.ids == before.ids);
  }
  CHECK(six + nine == tally.selected);
  check_rate(six, six + nine, 0.75);
  CHECK_THROWS_AS(TokenSampler({0, 0}), UsageError);
}

TEST_CASE("prefixes fill the record, and each objective labels its positions") {
  Scratch scratch;
  for (std::size_t objective = 0; objective < 4; ++objective) {
    PrefixOptions options;
    options.mix = {0, 0, 0, 0};
    options.mix[objective] = 1;
    const auto prefix = make_prefix(options);
    for (const std::size_t n : {1UL, 2UL, 9UL}) {
      Tally tally;
      Record record = sample(4, n);
      prefix->apply(record, scratch, tally);
      const auto length = static_cast<Index>(n);
      const mask::Mask mask = mask::parse_mask(*record.mask).bind({length, length});
      if (objective == 0) {
        CHECK_FALSE(record.labels.present);
        Record masked = sample(4, n);
        make_prefix(options, make_mlm({.selection = {.rate = 1}, .mask = 1, .keep = 0, .random = 0},
                                      table()))
            ->apply(masked, scratch, tally);
        CHECK(masked.mask == "full");
        CHECK(masked.labels.present);
        continue;
      }
      for (std::size_t i = 0; i < n; ++i) {
        const std::int32_t label = record.labels.values[i];
        if (label == kNoLabel) continue;
        const std::size_t predicted = objective == 3 ? i - 1 : i + 1;
        CHECK(label == record.ids[predicted]);
        CHECK_FALSE(mask.allows(static_cast<Index>(i), static_cast<Index>(predicted)));
      }
    }
  }
}

TEST_CASE("every noise of BART keeps its ends and its original") {
  Scratch scratch;
  Tally tally;
  for (const BartNoise noise : {BartNoise::kMask, BartNoise::kDelete, BartNoise::kInfill,
                                BartNoise::kPermute, BartNoise::kRotate}) {
    const auto bart = make_bart({.noise = noise, .sentence_end = 20}, table());
    for (const std::size_t n : {1UL, 2UL, 3UL, 60UL}) {
      const Record before = sample(11, n);
      Record record = before;
      bart->apply(record, scratch, tally);
      CHECK(record.original.values == before.ids);
      CHECK(record.ids.front() == 2);
      if (n > 1) CHECK(record.ids.back() == 3);
      if (noise == BartNoise::kPermute || noise == BartNoise::kRotate) {
        std::vector<TokenId> a = record.ids;
        std::vector<TokenId> b = before.ids;
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        CHECK(a == b);
      }
      make_undo()->apply(record, scratch, tally);
      CHECK(record.ids == before.ids);
    }
  }
}

TEST_CASE(
    "packing cuts nothing unless requested, restarts positions and says where documents are") {
  for (const bool cut : {false, true}) {
    Packer packer({.length = 10, .pos_start = 2, .cut = cut});
    std::vector<Record> out;
    const auto emit = [&](const Record& record) { out.push_back(record); };
    std::vector<TokenId> all;
    for (const std::size_t n : {4UL, 5UL, 3UL, 10UL, 1UL}) {
      const Record document = sample(n, n);
      all.insert(all.end(), document.ids.begin(), document.ids.end());
      packer.add(document, emit);
    }
    packer.finish(emit);
    std::vector<TokenId> joined;
    for (const Record& record : out) {
      CHECK(record.size() <= 10);
      if (cut && &record != &out.back()) CHECK(record.size() == 10);
      joined.insert(joined.end(), record.ids.begin(), record.ids.end());
      CHECK(record.cu_seqlens.values.front() == 0);
      CHECK(record.cu_seqlens.values.back() == static_cast<std::int32_t>(record.size()));
      const auto n = static_cast<Index>(record.size());
      const mask::Mask mask = mask::parse_mask(*record.mask).bind({n, n});
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) {
          CHECK(mask.allows(i, j) == (record.doc.values[static_cast<std::size_t>(i)] ==
                                      record.doc.values[static_cast<std::size_t>(j)]));
        }
      }
      CHECK(record.pos.values.front() == 2);
    }
    CHECK(joined == all);
    CHECK(out.size() == (cut ? 3 : 4));
  }
  Packer packer({.length = 3});
  CHECK_THROWS_AS(packer.add(sample(1, 4), [](const Record&) {}), InputError);
}

TEST_CASE("packing keeps what belongs to the tokens, and refuses what would be lost") {
  Scratch scratch;
  Tally tally;
  const auto drop_sequence = [](const Record&) {};
  ElectraRecordOptions electra;
  electra.selection.rate = 0.5;
  for (const bool cut : {false, true}) {
    Packer packer({.length = 10, .pos_start = 1, .cut = cut});
    std::vector<Record> packed;
    std::vector<TokenId> all;
    const auto emit = [&](const Record& record) { packed.push_back(record); };
    for (std::uint64_t i = 0; i < 6; ++i) {
      Record record = sample(i, 3 + i);
      all.insert(all.end(), record.ids.begin(), record.ids.end());
      record.words.make(record.size());
      for (std::size_t t = 0; t < record.size(); ++t)
        record.words.values[t] = static_cast<std::int32_t>(7 + t / 2);
      make_electra(electra, table())->apply(record, scratch, tally);
      packer.add(record, emit);
    }
    packer.finish(emit);
    std::vector<TokenId> restored;
    for (Record& record : packed) {
      CHECK(length_problem(record) == std::nullopt);
      for (std::size_t t = 1; t < record.size(); ++t) {
        const std::int32_t step = record.words.values[t] - record.words.values[t - 1];
        CHECK((step == 0 || step == 1));
        if (record.doc.values[t] != record.doc.values[t - 1]) CHECK(step == 1);
      }
      make_undo()->apply(record, scratch, tally);
      restored.insert(restored.end(), record.ids.begin(), record.ids.end());
    }
    CHECK(restored == all);
  }
  // Dropped tokens go with the part of the document in which they were.
  Record gaps;
  gaps.ids = {5, 6, 7, 8};
  gaps.pos.make(4) = {1, 2, 4, 5};
  gaps.has_dropped = true;
  gaps.dropped = {{0, 9}, {3, 8}, {6, 7}};
  Packer packer({.length = 2, .cut = true});
  std::vector<std::vector<std::int32_t>> places;
  packer.add(gaps, [&](const Record& record) {
    places.emplace_back();
    for (const DroppedToken& token : record.dropped) places.back().push_back(token.pos);
  });
  CHECK(places == std::vector<std::vector<std::int32_t>>{{0, 3}, {6}});
  // What is refused leaves nothing in the open sequence.
  const auto refused = [&](const auto& change) {
    for (const bool cut : {false, true}) {
      Packer mixed({.length = 9, .pos_start = 2, .cut = cut});
      Record record = sample(1, 4);
      change(record);
      mixed.add(sample(2, 3), drop_sequence);
      CHECK_THROWS_AS(mixed.add(record, drop_sequence), InputError);
      mixed.add(sample(3, 2), drop_sequence);
      mixed.finish([&](const Record& packed) {
        CHECK(packed.size() == 5);
        CHECK(length_problem(packed) == std::nullopt);
      });
    }
  };
  refused([](Record& record) { record.mask = "xlnet_order(1)"; });
  refused([](Record& record) { record.doc.make(4) = {0, 0, 1, 1}; });
  refused([](Record& record) { record.cu_seqlens.make(2) = {0, 4}; });
  refused([](Record& record) { record.source.make(1) = {7}; });
  refused([](Record& record) { record.original.make(4) = {1, 2, 3, 4}; });
  refused([](Record& record) {
    record.original.make(3) = {1, 2, 3};
    record.labels.make(4) = {1, 2, 3, 4};
  });
  refused([](Record& record) { record.labels.make(4) = {1, 2, 3, 4}; });
  refused([](Record& record) { record.words.make(4) = {1, 2, 3, 4}; });
  refused([](Record& record) {
    record.has_dropped = true;
    record.dropped = {{1, 2}};
  });
  refused([](Record& record) { record.pos.make(4) = {1, 2, 3, INT32_MAX}; });
}

TEST_CASE("a record of special tokens only passes unharmed") {
  Scratch scratch;
  Tally tally;
  Record specials;
  specials.ids = {2, 3};
  for (const auto& corruption :
       {make_drop({.rate = 1}, table()), make_mlm({}, table()), make_mae({.ratio = 1}, table())}) {
    Record record = specials;
    corruption->apply(record, scratch, tally);
    CHECK(record.ids == specials.ids);
  }
  Record ordinary;
  ordinary.ids = {50, 60};
  make_drop({.rate = 1}, table())->apply(ordinary, scratch, tally);
  CHECK(ordinary.ids == std::vector<TokenId>{50});
}

TEST_CASE("compositions are undone exactly, or refused") {
  Scratch scratch;
  Tally tally;
  const auto undo = make_undo();
  const auto drop = make_drop({.rate = 0.4, .seed = 8}, table());
  std::vector<std::unique_ptr<Corruption>> first;
  MlmOptions half;
  half.selection.rate = 0.5;
  ElectraRecordOptions electra;
  electra.selection.rate = 0.5;
  first.push_back(make_mlm(half, table()));
  first.push_back(make_electra(electra, table()));
  for (const auto& corruption : first) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Record before = sample(i, 1 + i % 30);
      Record record = before;
      corruption->apply(record, scratch, tally);
      drop->apply(record, scratch, tally);
      undo->apply(record, scratch, tally);
      REQUIRE(record.ids == before.ids);
    }
  }
  for (std::size_t objective = 0; objective < 4; ++objective) {
    PrefixOptions options;
    options.mix = {0, 0, 0, 0};
    options.mix[objective] = 1;
    const Record before = sample(3, 12);
    Record record = before;
    make_prefix(options)->apply(record, scratch, tally);
    undo->apply(record, scratch, tally);
    CHECK(record.ids == before.ids);
    CHECK_FALSE(record.seg.present);
    CHECK_FALSE(record.mask.has_value());
  }
  Record noisy = sample(5, 20);
  make_bart({.noise = BartNoise::kDelete}, table())->apply(noisy, scratch, tally);
  if (noisy.size() != 20) CHECK_THROWS_AS(drop->apply(noisy, scratch, tally), InputError);
  Record placed = sample(5, 20);
  placed.mask = "prefix(4)";
  CHECK_THROWS_AS(drop->apply(placed, scratch, tally), InputError);
  Record crooked;
  crooked.ids = {1};
  crooked.pos.present = crooked.original.present = crooked.has_dropped = true;
  crooked.pos.values = {0};
  crooked.original.values = {1, 2, 3};
  crooked.dropped = {{1, 2}};
  CHECK_THROWS_AS(undo->apply(crooked, scratch, tally), InputError);
}

TEST_CASE("dropping from packed documents keeps what says where they are") {
  Packer packer({.length = 20});
  std::vector<Record> packed;
  const auto emit = [&](const Record& record) { packed.push_back(record); };
  for (std::uint64_t i = 0; i < 4; ++i) packer.add(sample(i, 5), emit);
  packer.finish(emit);
  REQUIRE(packed.size() == 1);
  Scratch scratch;
  Tally tally;
  Record& record = packed.front();
  make_drop({.rate = 0.5, .seed = 2}, table())->apply(record, scratch, tally);
  REQUIRE(record.cu_seqlens.values.size() == 5);
  CHECK(record.cu_seqlens.values.back() == static_cast<std::int32_t>(record.size()));
  const auto n = static_cast<Index>(record.size());
  const mask::Mask mask = mask::parse_mask(*record.mask).bind({n, n});
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      CHECK(mask.allows(i, j) == (record.doc.values[static_cast<std::size_t>(i)] ==
                                  record.doc.values[static_cast<std::size_t>(j)]));
    }
  }
  Record whole = sample(1, 6);
  whole.mask = "document(2,4)";
  make_perm({}, table())->apply(whole, scratch, tally);
  CHECK(whole.mask->starts_with("(document(2,4)) & "));
}

}  // namespace
}  // namespace masque::records
