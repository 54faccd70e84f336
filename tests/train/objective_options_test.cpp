// What is trained on is what droptoken makes with the same options and seed.
#include <functional>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "train/loss/electra_loss.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

using test::bits_of;
using test::contains;
using test::make_objective;
using test::message_of;
using test::objective_options;
using test::Sequence;

constexpr std::uint64_t kSeed = 7;

records::Record record_of(const Sequence& sequence, std::uint64_t epoch) {
  records::Record record;
  record.number = sequence.number;
  record.epoch = epoch;
  record.ids = sequence.ids;
  return record;
}

void apply(const records::Corruption& corruption, records::Record& record) {
  records::Scratch scratch;
  records::Tally tally;
  corruption.apply(record, scratch, tally);
}

/// Whether the example has the record's ids, positions and labels.
void check_same(const Example& example, const records::Record& record) {
  CHECK(example.ids == record.ids);
  for (std::size_t i = 0; i < record.size(); ++i) {
    const Index place = example.positions.empty() ? static_cast<Index>(i) : example.positions[i];
    CHECK(place == record.position(i));
  }
  std::vector<Index> rows;
  std::vector<TokenId> targets;
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (record.labels.values[i] == records::kNoLabel) continue;
    rows.push_back(static_cast<Index>(i));
    targets.push_back(record.labels.values[i]);
  }
  CHECK(example.rows == rows);
  CHECK(example.targets == targets);
}

/// Examples of an objective against records that `corrupt` has been over.
void compare(const std::string& name, const ObjectiveOptions& options,
             const std::function<void(records::Record&)>& corrupt) {
  CAPTURE(name);
  const auto objective = make_objective(name, options);
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Sequence sequence(number, 64);
    records::Record record = record_of(sequence, 3);
    corrupt(record);
    const Example example = objective->example(sequence.item(), 3);
    check_same(example, record);
    const auto n = static_cast<Index>(record.size());
    if (example.query_mask) {
      CHECK(mask::to_bits(*example.query_mask) == bits_of(*record.mask, n));
    } else if (record.mask) {
      CHECK(bits_of(example.mask, n) == bits_of(*record.mask, n));
    }
  }
}

TEST_CASE("similar tokens stand for the selected") {
  ObjectiveOptions options = objective_options(kSeed);
  options.mlm.similar.resize(900);
  for (std::size_t id = 5; id < 900; ++id)
    options.mlm.similar[id] = {static_cast<TokenId>(id - 1), static_cast<TokenId>(id + 1)};
  options.mlm.selection.rate = 0.3;
  records::MlmOptions mlm = options.mlm;
  mlm.selection.seed = kSeed;
  const auto corruption = make_mlm(mlm, options.tokens);
  compare("mlm", options, [&](records::Record& record) { apply(*corruption, record); });
  std::size_t near = 0;
  std::size_t selected = 0;
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Sequence sequence(number, 64);
    const Example example = make_objective("mlm", options)->example(sequence.item(), 3);
    selected += example.rows.size();
    for (const Index row : example.rows) {
      const auto at = static_cast<std::size_t>(row);
      near += std::abs(example.ids[at] - sequence.ids[at]) == 1 ? 1U : 0U;
    }
  }
  // Four of five, but for the ids without similar ones.
  CHECK(near > selected * 2 / 3);
}

TEST_CASE("permutations in blocks, with other spans") {
  ObjectiveOptions options = objective_options(kSeed);
  options.perm.perm_size = 16;
  options.perm.alpha = 4;
  options.perm.beta = 2;
  options.perm.predict = 0.25;
  records::PermOptions perm = options.perm;
  perm.seed = kSeed;
  const auto corruption = make_perm(perm, options.tokens);
  compare("plm", options, [&](records::Record& record) { apply(*corruption, record); });
  // Every option shows.
  const Sequence sequence(3, 64);
  const Example before = make_objective("plm", options)->example(sequence.item(), 0);
  const auto differs = [&](const ObjectiveOptions& other) {
    const Example example = make_objective("plm", other)->example(sequence.item(), 0);
    return example.rows != before.rows ||
           !(mask::to_bits(*example.query_mask) == mask::to_bits(*before.query_mask));
  };
  ObjectiveOptions other = options;
  other.perm.perm_size = 32;
  CHECK(differs(other));
  other = options;
  other.perm.alpha = 6;
  CHECK(differs(other));
  other = options;
  other.perm.beta = 1;
  CHECK(differs(other));
}

TEST_CASE("UniLM with other shares of the source and weights of its masks") {
  ObjectiveOptions options = objective_options(kSeed);
  options.prefix.low = 0.5;
  options.prefix.high = 0.6;
  options.prefix.mix = {0, 3, 1, 1};
  records::PrefixOptions prefix = options.prefix;
  prefix.seed = kSeed;
  const auto corruption = make_prefix(prefix);
  compare("unilm", options, [&](records::Record& record) { apply(*corruption, record); });
}

TEST_CASE("DropToken with positions counted anew, and a least number of tokens") {
  ObjectiveOptions options = objective_options(kSeed);
  options.drop = {.rate = 0.9, .min_keep = 20};
  records::DropOptions drop = options.drop;
  drop.seed = kSeed;
  records::MlmOptions mlm = options.mlm;
  mlm.selection.seed = kSeed;
  const auto corruption = make_mlm(mlm, options.tokens);
  for (const bool renumber : {false, true}) {
    options.drop.renumber = drop.renumber = renumber;
    const auto dropping = make_drop(drop, options.tokens);
    compare("mlm", options, [&](records::Record& record) {
      apply(*dropping, record);
      apply(*corruption, record);
      CHECK(record.size() >= 20);
    });
  }
  const Sequence sequence(1, 64);
  const Example example = make_objective("mlm", options)->example(sequence.item(), 0);
  for (std::size_t i = 0; i < example.positions.size(); ++i)
    CHECK(example.positions[i] == static_cast<Index>(i));
  ElectraSelectionOptions electra;
  electra.tokens = options.tokens;
  electra.seed = kSeed;
  electra.drop = options.drop;
  electra.selection.rate = 0.2;
  electra.selection.rate_high = 0.6;
  const ElectraItem item = ElectraSelection(electra).select(sequence.item(), 3);
  records::Record record = record_of(sequence, 3);
  apply(*make_drop(drop, options.tokens), record);
  CHECK(item.ids == record.ids);
  mlm.selection = electra.selection;
  mlm.selection.seed = kSeed;
  mlm.mask = 0.85;
  mlm.keep = 1 - 0.85;
  mlm.random = 0;
  apply(*make_mlm(mlm, options.tokens), record);
  CHECK(item.masked == record.ids);
}

TEST_CASE("mae keeps what droptoken mae keeps") {
  ObjectiveOptions options = objective_options(kSeed);
  options.mae = {.ratio = 0.9, .min_keep = 12};
  const auto corruption = make_mae({.ratio = 0.9, .min_keep = 12, .seed = kSeed}, options.tokens);
  const auto objective = make_objective("mae-mask", options);
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Sequence sequence(number, 64);
    records::Record record = record_of(sequence, 3);
    apply(*corruption, record);
    CHECK(record.size() == 12);
    const Example example = objective->example(sequence.item(), 3);
    REQUIRE(example.rows.size() == record.dropped.size());
    for (std::size_t k = 0; k < example.rows.size(); ++k) {
      CHECK(example.rows[k] == record.dropped[k].pos);
      CHECK(example.targets[k] == record.dropped[k].id);
    }
  }
  options.drop.rate = 1;
  CHECK(contains(message_of<UsageError>([&] { make_objective("mae-mask", options); }), "drop:"));
}

}  // namespace
}  // namespace masque::train
