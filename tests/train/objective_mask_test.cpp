// Objectives with a mask for each sequence: unilm, plm, plm-hf, mae-mask.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "mask/permutation.hpp"
#include "model/model.hpp"
#include "records/selection.hpp"
#include "support/message.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

using test::bits_of;
using test::check_rate;
using test::contains;
using test::kMaskToken;
using test::make_objective;
using test::message_of;
using test::objective_options;
using test::Sequence;
using Ids = std::vector<TokenId>;
using Rows = std::vector<Index>;

/// The seed of the zoo's masks for an example of plm.
std::uint64_t zoo_seed(const char* purpose, std::uint64_t epoch, std::uint64_t number) {
  const PhiloxBlock words = records::RandomSource(1, purpose).stream(epoch, number).block(0);
  return words[0] | std::uint64_t{words[1]} << 32;
}

/// Ordinary tokens only.
Sequence plain(std::uint64_t number, std::size_t n) {
  Sequence sequence(number, n);
  sequence.ids.front() = 900;
  sequence.ids.back() = 901;
  return sequence;
}

TEST_CASE("unilm on text: a third masked, a third to a target, a sixth each way") {
  const auto objective = make_objective("unilm");
  std::array<std::uint64_t, 4> count{};
  constexpr std::uint64_t kSequences = 600;
  for (std::uint64_t number = 0; number < kSequences; ++number) {
    const Sequence sequence(number, 20);
    const Example example = objective->example(sequence.item(), 0);
    const mask::BitMatrix bits = bits_of(example.mask, 20);
    if (!example.mask) {
      ++count[0];
      for (std::size_t r = 0; r < example.rows.size(); ++r) {
        CHECK(example.targets[r] == sequence.ids[static_cast<std::size_t>(example.rows[r])]);
      }
      continue;
    }
    CHECK(example.ids == sequence.ids);
    const bool causal = bits == bits_of("causal", 20) && example.segments.empty();
    const bool reverse = bits == bits_of("reverse", 20);
    ++count.at(causal ? 2 : reverse ? 3 : 1);
    for (std::size_t r = 0; r < example.rows.size(); ++r) {
      const Index next = example.rows[r] + (reverse ? -1 : 1);
      CHECK(example.targets[r] == sequence.ids[static_cast<std::size_t>(next)]);
      // What is predicted is not read.
      CHECK_FALSE(bits.get(example.rows[r], next));
    }
    if (causal || reverse) {
      CHECK(example.rows.size() == 19);
      continue;
    }
    REQUIRE(example.segments.size() == 20);
    const Index source = std::count(example.segments.begin(), example.segments.end(), 0);
    CHECK(bits ==
          bits_of("unilm(" + std::to_string(source) + "," + std::to_string(20 - source) + ")", 20));
    CHECK(example.rows.front() == source - 1);
    CHECK(example.rows.back() == 18);
    CHECK(source >= 4);
    CHECK(source <= 16);
  }
  check_rate(count[0], kSequences, 1.0 / 3);
  check_rate(count[1], kSequences, 1.0 / 3);
  check_rate(count[2], kSequences, 1.0 / 6);
  check_rate(count[3], kSequences, 1.0 / 6);
}

/// Options under a mask, with the test's words: even ids begin them.
ObjectiveOptions under(const std::string& mask) {
  ObjectiveOptions options = objective_options();
  options.mask = mask;
  return options;
}

TEST_CASE("masks of words: no row reads a piece of its own word") {
  for (const char* name : {"tta", "clm", "mlm"}) {
    const Sequence sequence(3, 40);
    const Example words = make_objective(name, under("tta_word"))->example(sequence.item(), 0);
    const Example later = make_objective(name, under("tta_word_l2r"))->example(sequence.item(), 0);
    std::vector<Index> word;
    const std::vector<Index> lengths = records::word_lengths(words.ids, objective_options().tokens);
    for (std::size_t w = 0; w < lengths.size(); ++w)
      word.insert(word.end(), static_cast<std::size_t>(lengths[w]), static_cast<Index>(w));
    REQUIRE(std::ssize(word) == 40);
    CHECK(lengths.size() < 40);
    REQUIRE(words.mask);
    REQUIRE(later.mask);
    for (Index i = 0; i < 40; ++i) {
      for (Index j = 0; j < 40; ++j) {
        const bool same = word[static_cast<std::size_t>(i)] == word[static_cast<std::size_t>(j)];
        CHECK(words.mask->allows(i, j) == !same);
        CHECK(later.mask->allows(i, j) == !(same && j >= i));
      }
    }
  }
}

TEST_CASE("disco draws anew for each sequence and epoch, a given seed does not") {
  const Sequence one(1, 20);
  const Sequence two(2, 20);
  const auto bits = [&](const std::string& mask, const Sequence& sequence, std::uint64_t epoch) {
    return bits_of(make_objective("tta", under(mask))->example(sequence.item(), epoch).mask, 20);
  };
  CHECK(bits("disco", one, 0) == bits("disco", one, 0));
  CHECK_FALSE(bits("disco", one, 0) == bits("disco", one, 1));
  CHECK_FALSE(bits("disco", one, 0) == bits("disco", two, 0));
  CHECK(bits("disco(7)", one, 0) == bits("disco(7)", two, 5));
  for (Index i = 0; i < 20; ++i) CHECK_FALSE(bits("disco", one, 3).get(i, i));
  CHECK(contains(message_of<UsageError>([] { make_objective("tta", under("tta, tta_word")); }),
                 "a list cannot be combined with masks of sequences"));
}

TEST_CASE("masks of a corpus are joined with the objective's") {
  const Sequence sequence(0, 6);
  CorpusItem item = sequence.item();
  item.mask = "document(4,2)";
  const Example tta = make_objective("tta", under("tta"))->example(item, 0);
  CHECK(bits_of(tta.mask, 6) == bits_of("document(4,2) & tta", 6));
  const Example clm = make_objective("clm", under("causal"))->example(item, 0);
  CHECK(bits_of(clm.mask, 6) == bits_of("document(4,2) & causal", 6));
  CHECK(clm.rows == Rows{0, 1, 2, 4});  // row 3 would predict another document's first token
  const std::vector<std::int32_t> positions{0, 1, 2, 3, 0, 1};
  item.positions = positions;
  const Example mlm = make_objective("mlm")->example(item, 0);
  CHECK(mlm.positions == std::vector<Index>{0, 1, 2, 3, 0, 1});
  CHECK(bits_of(mlm.mask, 6) == bits_of("document(4,2)", 6));
  Corpus corpus;
  corpus.add(item);
  for (const char* name : {"unilm", "plm", "mae-mask"}) {
    CHECK(contains(message_of<UsageError>([&] { make_objective(name)->check(corpus); }),
                   "the corpus has sequences with masks, expected an objective that takes them"));
  }
  ObjectiveOptions dropping = objective_options();
  dropping.drop.rate = 0.1;
  CHECK(contains(message_of<UsageError>([&] { make_objective("mlm", dropping)->check(corpus); }),
                 "drop cannot be combined with the masks of the corpus"));
}

TEST_CASE("records: their rows, targets, weights and masks") {
  const std::vector<TokenId> ids{7, 4, 9};
  const std::vector<std::int32_t> labels{-100, 8, 9};
  const std::vector<double> weights{1, 0.5, 2};
  CorpusItem item;
  item.ids = ids;
  item.labels = labels;
  item.weights = weights;
  item.mask = "xlnet_order(1,2)";
  Corpus corpus;
  corpus.add(item);
  corpus.set_labels(LabelKind::kTokens);
  CHECK(record_needs(corpus).streams == model::Streams::kTwo);
  const Example one = make_objective("records")->example(item, 0);
  CHECK(one.rows == Rows{1, 2});
  CHECK(one.targets == Ids{8, 9});
  CHECK(one.weights == std::vector<double>{0.5, 2});
  CHECK(bits_of(one.mask, 3) == bits_of("xlnet_order(1,2)", 3));
  ObjectiveOptions options = objective_options();
  options.records = record_needs(corpus);
  const auto objective = make_objective("records", options);
  const Example two = objective->example(item, 0);
  CHECK(bits_of(two.query_mask, 3) == bits_of("xlnet_order(1,2)", 3));
  CHECK(bits_of(two.mask, 3) == bits_of("xlnet_order(1,2) | diagonal", 3));
  model::Design design;
  objective->adapt(design);
  CHECK(design.streams == model::Streams::kTwo);
  options.records.labels = LabelKind::kReplaced;
  CHECK(contains(message_of([&] { make_objective("records", options)->check(corpus); }),
                 "without labels of the kind"));
  options.records = {.causal = true};
  model::Design causal;
  make_objective("records", options)->adapt(causal);
  CHECK(causal.mask == model::DefaultMask::kCausal);
  CHECK(causal.head.kind == model::HeadKind::kCausal);
}

TEST_CASE("unilm on pairs: the target from the source, by hand") {
  ObjectiveOptions options = objective_options();
  options.pairs = true;
  const auto objective = make_objective("unilm", options);
  Sequence pair(0, 6);
  pair.ids = {2, 10, 3, 20, 21, 3};
  pair.segments = {0, 0, 0, 1, 1, 1};
  const Example example = objective->example(pair.item(), 5);
  CHECK(example.ids == pair.ids);
  CHECK(example.rows == Rows{2, 3, 4});
  CHECK(example.targets == Ids{20, 21, 3});
  CHECK(example.segments == std::vector<Index>{0, 0, 0, 1, 1, 1});
  mask::BitMatrix expected(6, 6);
  for (Index i = 0; i < 6; ++i) {
    for (Index j = 0; j < 6; ++j) expected.set(i, j, j < 3 || (i >= 3 && j <= i));
  }
  CHECK(bits_of(example.mask, 6) == expected);

  Corpus corpus;
  corpus.add(pair.ids, pair.segments);
  objective->check(corpus);
  CHECK(contains(message_of([&] { make_objective("unilm")->check(corpus); }),
                 "expected one segment"));
  pair.segments = {0, 1, 0, 1, 1, 1};
  corpus.add(pair.ids, pair.segments);
  CHECK(
      contains(message_of([&] { objective->check(corpus); }), "a source token follows the target"));
  Corpus text;
  text.add(pair.ids);
  CHECK(contains(message_of([&] { objective->check(text); }), "expected sources and targets"));
}

TEST_CASE("plm: XLNet's rule as the mask zoo has it, true tokens, 85 of 512 targets") {
  const auto objective = make_objective("plm");
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Sequence sequence = plain(number, 512);
    const Example example = objective->example(sequence.item(), 0);
    CHECK(example.ids == sequence.ids);
    CHECK(example.rows.size() == 85);
    REQUIRE(example.query_mask);
    const mask::BitMatrix query = mask::to_bits(*example.query_mask);
    CHECK(query == bits_of("xlnet(predict=85,seed=" +
                               std::to_string(zoo_seed("droptoken perm", 0, number)) + ")",
                           512));
    CHECK(mask::to_bits(*example.mask) ==
          mask::to_bits(*example.query_mask | mask::parse_mask("diagonal").bind({512, 512})));
  }
}

TEST_CASE("plm: who reads whom") {
  const auto objective = make_objective("plm");
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Sequence sequence(number, 60);
    const Example example = objective->example(sequence.item(), 1);
    const mask::BitMatrix query = mask::to_bits(*example.query_mask);
    std::vector<bool> target(60, false);
    for (const Index row : example.rows) target[static_cast<std::size_t>(row)] = true;
    for (Index i = 0; i < 60; ++i) {
      for (Index j = 0; j < 60; ++j) {
        const bool reader = target[static_cast<std::size_t>(i)];
        const bool read = target[static_cast<std::size_t>(j)];
        const auto special = [](Index k) { return k == 0 || k == 59; };
        if (!read && !special(j)) CHECK(query.get(i, j));
        if (!reader && !special(i) && (read || special(j))) CHECK_FALSE(query.get(i, j));
        // Of two targets one comes before the other, and none reads itself.
        if (reader && read) CHECK((query.get(i, j) != query.get(j, i)) == (i != j));
        if (reader && i == j) CHECK_FALSE(query.get(i, j));
      }
    }
    for (std::size_t r = 0; r < example.rows.size(); ++r) {
      CHECK(example.targets[r] == sequence.ids[static_cast<std::size_t>(example.rows[r])]);
    }
  }
}

TEST_CASE("plm-hf: hidden in the content too, both halves in one order, a sixth selected") {
  const auto objective = make_objective("plm-hf");
  double sum = 0;
  double squares = 0;
  constexpr int kSequences = 200;
  for (std::uint64_t number = 0; number < kSequences; ++number) {
    const Sequence sequence = plain(number, 512);
    const Example example = objective->example(sequence.item(), 0);
    CHECK(
        mask::to_bits(*example.query_mask) ==
        bits_of("xlnet_hf(" + std::to_string(zoo_seed("droptoken perm hf", 0, number)) + ")", 512));
    for (std::size_t r = 0; r < example.rows.size(); ++r) {
      const auto row = static_cast<std::size_t>(example.rows[r]);
      CHECK(example.ids[row] == kMaskToken);
      CHECK(example.targets[r] == sequence.ids[row]);
    }
    const double share = static_cast<double>(example.rows.size()) / 512;
    sum += share;
    squares += share * share;
  }
  const double mean = sum / kSequences;
  const double deviation = std::sqrt((squares / kSequences - mean * mean) / kSequences);
  CHECK(std::abs(mean - 0.1666) < 3 * deviation);

  const Sequence odd(0, 7);
  Corpus corpus;
  corpus.add(odd.ids);
  CHECK(contains(message_of([&] { objective->check(corpus); }), "sequence 1 has 7 tokens"));
  make_objective("plm")->check(corpus);
  ObjectiveOptions drop = objective_options();
  drop.drop.rate = 0.1;
  CHECK(contains(message_of<UsageError>([&] { make_objective("plm-hf", drop); }), "even lengths"));
  // Special tokens are never hidden as keys.
  const Example special = objective->example(Sequence(3, 64).item(), 0);
  const mask::BitMatrix query = mask::to_bits(*special.query_mask);
  for (Index i = 0; i < 64; ++i) CHECK((query.get(i, 0) && query.get(i, 63)));
}

TEST_CASE("mae-mask: a column mask is the removal of its tokens") {
  const auto model =
      model::open_model(MASQUE_TEST_DATA "/model/bert", {.precision = kernel::Precision::kF64});
  ObjectiveOptions options = objective_options();
  options.mae.ratio = 0.5;
  options.tokens.size = static_cast<TokenId>(model->design().vocab_size);
  const auto objective = make_objective("mae-mask", options);
  Sequence sequence(2, 14);
  for (TokenId& id : sequence.ids) id = id % (options.tokens.size - 5) + 5;
  sequence.ids.front() = 2;
  sequence.ids.back() = 3;
  const Example example = objective->example(sequence.item(), 0);
  CHECK(example.rows.size() == 6);
  model::Batch batch;
  batch.add(example.ids, {.mask = example.mask});
  Ids kept;
  Rows positions;
  model::Request request;
  for (Index i = 0; i < example.size(); ++i) {
    const bool hidden = std::binary_search(example.rows.begin(), example.rows.end(), i);
    const auto at = static_cast<std::size_t>(i);
    CHECK((example.ids[at] == kMaskToken) == hidden);
    for (Index q = 0; q < example.size(); ++q) CHECK(example.mask->allows(q, i) == !hidden);
    if (hidden) continue;
    kept.push_back(sequence.ids[at]);
    positions.push_back(i);
    request.rows.push_back(i);
  }
  const Index first = batch.add(kept, {.positions = positions});
  for (Index i = 0; i < std::ssize(kept); ++i) request.rows.push_back(first + i);
  request.targets.assign(request.rows.size(), 7);
  const std::vector<double> scores = model->run(batch, request);
  REQUIRE(scores.size() == 2 * kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(std::abs(scores[i] - scores[i + kept.size()]) <= 1e-12);
  }
}

}  // namespace
}  // namespace masque::train
