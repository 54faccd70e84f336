// Every objective of the registry: what it asks for, row by row.
#include "train/data/objective.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

using test::check_rate;
using test::contains;
using test::kMaskToken;
using test::make_objective;
using test::message_of;
using test::objective_options;
using test::Sequence;
using Ids = std::vector<TokenId>;
using Rows = std::vector<Index>;

/// Whether two examples are the same in everything.
bool same(const Example& a, const Example& b) {
  return a.ids == b.ids && a.positions == b.positions && a.segments == b.segments &&
         a.rows == b.rows && a.targets == b.targets && a.weights == b.weights &&
         test::bits_of(a.mask, a.size()) == test::bits_of(b.mask, b.size()) &&
         test::bits_of(a.query_mask, a.size()) == test::bits_of(b.query_mask, b.size());
}

TEST_CASE("every objective: well-formed examples, the same for the same place") {
  CHECK(objectives().size() == 12);
  for (const ObjectiveKind* kind : objectives()) {
    CAPTURE(kind->name);
    CHECK_FALSE(kind->summary.empty());
    CHECK_FALSE(kind->source.empty());
    const auto objective = kind->make(objective_options());
    bool differs = false;
    for (const std::size_t n : {2U, 4U, 30U, 128U}) {
      const Sequence sequence(n, n);
      const Example example = objective->example(sequence.item(), 3);
      CHECK(same(example, objective->example(sequence.item(), 3)));
      CHECK(same(example, make_objective(kind->name)->example(sequence.item(), 3)));
      differs = differs || !same(example, objective->example(sequence.item(), 4));
      REQUIRE(example.targets.size() == example.rows.size());
      CHECK(std::is_sorted(example.rows.begin(), example.rows.end(), std::less_equal<>()));
      // The last token of a target is only predicted.
      CHECK(example.ids.size() == (kind->name == "univae"    ? 2 * n
                                   : kind->name == "seq2seq" ? n - 1
                                                             : n));
      for (const Index row : example.rows) CHECK((0 <= row && row < example.size()));
      if (example.mask)
        CHECK(example.mask->lengths() == mask::Lengths{example.size(), example.size()});
    }
    const bool random = kind->name != "tta" && kind->name != "two-tower" && kind->name != "clm" &&
                        kind->name != "records" && kind->name != "seq2seq" &&
                        kind->name != "univae";
    CHECK(differs == random);
  }
  CHECK(
      contains(message_of<UsageError>([] { find_objective("nsp"); }), "clm, mae-mask, mdlm, mlm"));
}

TEST_CASE("univae: the sequence twice, the second copy predicted under its mask") {
  const Sequence sequence(5, 5);
  const Example example = make_objective("univae")->example(sequence.item(), 0);
  const std::vector<TokenId> first(example.ids.begin(), example.ids.begin() + 5);
  CHECK(std::vector<TokenId>(example.ids.begin() + 5, example.ids.end()) == first);
  CHECK(example.positions == std::vector<Index>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  CHECK(example.segments == std::vector<Index>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
  CHECK(example.rows == std::vector<Index>{5, 6, 7, 8});
  CHECK(example.targets == std::vector<TokenId>(first.begin() + 1, first.end()));
  REQUIRE(example.mask);
  CHECK(example.mask->allows(2, 4));
  CHECK_FALSE(example.mask->allows(7, 0));
  CHECK(example.mask->allows(7, 6));
  CHECK_FALSE(example.mask->allows(7, 8));
  ObjectiveOptions options = objective_options();
  options.latent_layers = 2;
  options.latent_size = 5;
  options.kappa = 9;
  model::Design design;
  design.num_hidden_layers = 12;
  make_objective("univae")->adapt(design);
  CHECK(design.variants.latent == model::LatentDesign{.layers = 4, .size = 16, .kappa = 32});
  design.variants.latent.reset();
  make_objective("univae", options)->adapt(design);
  CHECK(design.variants.latent == model::LatentDesign{.layers = 2, .size = 5, .kappa = 9});
}

TEST_CASE("seq2seq: the encoder reads the source, the decoder the target but its last token") {
  const Ids ids = {9, 8, 7, 2, 5, 6};
  const std::vector<std::uint8_t> segments = {0, 0, 0, 1, 1, 1};
  CorpusItem item;
  item.ids = ids;
  item.segments = segments;
  const Example example = make_objective("seq2seq")->example(item, 0);
  CHECK(example.source == Ids{9, 8, 7});
  CHECK(example.ids == Ids{2, 5});
  CHECK(example.rows == Rows{0, 1});
  CHECK(example.targets == Ids{5, 6});
  model::Design design;
  CHECK(contains(message_of<UsageError>([&] { make_objective("seq2seq")->adapt(design); }),
                 "needs init with an encoder–decoder"));
  const std::vector<std::uint8_t> sources(6, 0);
  item.segments = sources;
  CHECK(make_objective("seq2seq")->example(item, 0).rows.empty());
}

TEST_CASE("designs: defaults are filled in, contradictions refused") {
  for (const ObjectiveKind* kind : objectives()) {
    CAPTURE(kind->name);
    const auto objective = kind->make(objective_options());
    model::Design bare;
    bare.num_hidden_layers = 2;
    if (kind->traits.reads_sources) bare.source = model::SourceDesign{.start_token_id = 0};
    model::Design design = bare;
    objective->adapt(design);
    CHECK(design.vocab_size == 1000);
    CHECK(design.mask_token_id == kMaskToken);
    const bool causal = kind->name == "clm" || kind->name == "seq2seq";
    CHECK(design.head.kind == (causal ? model::HeadKind::kCausal : model::HeadKind::kMasked));
    CHECK((design.mask == model::DefaultMask::kCausal) == causal);
    CHECK((design.mask == model::DefaultMask::kOthers) == (kind->name == "tta"));
    CHECK((design.streams == model::Streams::kFixedKeys) == (kind->name == "tta"));
    CHECK((design.streams == model::Streams::kTwo) == kind->name.starts_with("plm"));
    CHECK((design.streams == model::Streams::kTowers) == (kind->name == "two-tower"));
    CHECK((layers_text(design.variants.masks) == "causal, reverse") == (kind->name == "two-tower"));
    const bool twofold = kind->name == "unilm" || kind->name == "univae";
    CHECK(design.type_vocab_size == (twofold ? 2 : 0));
    CHECK(design.variants.latent.has_value() == (kind->name == "univae"));
    const model::Design before = design;
    objective->adapt(design);
    CHECK(design == before);

    const auto problem = [&](const std::function<void(model::Design&)>& change) {
      model::Design other = bare;
      change(other);
      return message_of<UsageError>([&] { objective->adapt(other); });
    };
    CHECK(contains(problem([&](model::Design& d) {
                     d.mask = causal ? model::DefaultMask::kOthers : model::DefaultMask::kCausal;
                   }),
                   "the model has the mask"));
    CHECK(contains(problem([&](model::Design& d) {
                     d.head.kind =
                         causal ? model::HeadKind::kMasked : model::HeadKind::kDiscriminator;
                   }),
                   "head, expected a"));
    CHECK(contains(
        problem([&](model::Design& d) {
          d.streams = kind->name == "tta" ? model::Streams::kTwo : model::Streams::kFixedKeys;
        }),
        kind->name == "tta" ? "two streams, expected" : "from the embeddings, expected"));
    CHECK(contains(problem([](model::Design& d) { d.vocab_size = 10; }), "the tokenizer's 1000"));
  }
  for (const Index layers : {0, 1, 3}) {
    model::Design odd;
    odd.num_hidden_layers = layers;
    CHECK(contains(message_of<UsageError>([&] { make_objective("two-tower")->adapt(odd); }),
                   "expected an even number"));
  }
  ObjectiveOptions bare = objective_options();
  bare.tokens.mask = -1;
  model::Design design;
  CHECK(contains(message_of<UsageError>([&] { make_objective("tta", bare)->adapt(design); }),
                 "no mask token"));
  for (const std::string name : {"mlm", "mdlm", "unilm", "plm-hf", "mae-mask"}) {
    CHECK(contains(message_of<UsageError>([&] { make_objective(name, bare); }), "no mask token"));
  }
  ObjectiveOptions pairs = objective_options();
  pairs.pairs = true;
  model::Design one_type;
  one_type.type_vocab_size = 1;
  CHECK(contains(message_of<UsageError>([&] { make_objective("mlm", pairs)->adapt(one_type); }),
                 "one token type"));
}

TEST_CASE("mlm: the selected share, its split, and targets that are the true tokens") {
  const auto objective = make_objective("mlm");
  std::uint64_t ordinary = 0;
  std::uint64_t selected = 0;
  std::uint64_t masked = 0;
  std::uint64_t kept = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    const Sequence sequence(number, 128);
    const Example example = objective->example(sequence.item(), 2);
    CHECK_FALSE(example.mask);
    std::size_t next = 0;
    for (std::size_t i = 0; i < 128; ++i) {
      if (next == example.rows.size() || example.rows[next] != static_cast<Index>(i)) {
        CHECK(example.ids[i] == sequence.ids[i]);
        continue;
      }
      CHECK(example.targets[next++] == sequence.ids[i]);
      CHECK(sequence.ids[i] >= 5);
      masked += example.ids[i] == kMaskToken ? 1U : 0U;
      kept += example.ids[i] == sequence.ids[i] ? 1U : 0U;
    }
    ordinary += 126;
    selected += next;
  }
  check_rate(selected, ordinary, 0.15);
  check_rate(masked, selected, 0.8 + 0.1 / 1000);
  check_rate(kept, selected, 0.1 + 0.1 / 1000);
}

TEST_CASE("mlm: exact counts, words, rates that are drawn") {
  ObjectiveOptions options = objective_options();
  options.mlm.selection.choice = records::Choice::kExact;
  options.mlm.selection.rate = 0.4;
  const Sequence sequence(1, 102);
  CHECK(make_objective("mlm", options)->example(sequence.item(), 0).rows.size() == 40);
  options.mlm.selection.rate_high = 0.8;
  double least = 1;
  double most = 0;
  const auto ranged = make_objective("mlm", options);
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    const double share =
        static_cast<double>(ranged->example(sequence.item(), epoch).rows.size()) / 100;
    least = std::min(least, share);
    most = std::max(most, share);
  }
  CHECK(least >= 0.4);
  CHECK(least < 0.45);
  CHECK(most <= 0.8);
  CHECK(most > 0.75);
  options = objective_options();
  options.mlm.selection.unit = records::Unit::kWords;
  CHECK(contains(message_of<UsageError>([&] { make_objective("mlm", options); }),
                 "unit words: a corpus"));
}

TEST_CASE("static masks and fixed selections: what is never selected") {
  const Sequence sequence(9, 128);
  CHECK_FALSE(make_objective("mlm")->has_never_selected());
  for (const bool fixed : {false, true}) {
    CAPTURE(fixed);
    ObjectiveOptions options = objective_options();
    options.mlm.draws = fixed ? 0 : 3;
    options.mlm.fixed_selection = fixed;
    const auto objective = make_objective("mlm", options);
    REQUIRE(objective->has_never_selected());
    std::set<Index> ever;
    for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
      const Example example = objective->example(sequence.item(), epoch);
      ever.insert(example.rows.begin(), example.rows.end());
      if (!fixed) CHECK(same(example, objective->example(sequence.item(), epoch + 3)));
    }
    if (fixed) {
      const Rows first = objective->example(sequence.item(), 0).rows;
      CHECK(ever == std::set<Index>(first.begin(), first.end()));
    } else {
      CHECK_FALSE(
          same(objective->example(sequence.item(), 0), objective->example(sequence.item(), 1)));
    }
    std::uint64_t rows = 0;
    std::uint64_t changed = 0;
    const std::uint64_t draws = 300;
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      const Example never = objective->never_selected_example(sequence.item(), draw, 8);
      rows += never.rows.size();
      for (std::size_t r = 0; r < never.rows.size(); ++r) {
        CHECK_FALSE(ever.contains(never.rows[r]));
        CHECK(never.targets[r] == sequence.ids[static_cast<std::size_t>(never.rows[r])]);
      }
      for (std::size_t i = 0; i < 128; ++i) changed += never.ids[i] == kMaskToken ? 1U : 0U;
    }
    // After one epoch what the others will select has had no loss yet; before any, nothing.
    const auto count = [&](std::uint64_t epochs) {
      std::size_t sum = 0;
      for (std::uint64_t draw = 0; draw < draws; ++draw)
        sum += objective->never_selected_example(sequence.item(), draw, epochs).rows.size();
      return sum;
    };
    CHECK((count(1) > rows) == !fixed);
    CHECK(count(0) > count(1));
    // Corrupted as in training, with a loss only where there never was one.
    check_rate(rows, draws * (126 - ever.size()), 0.15);
    check_rate(changed, draws * 126, 0.15 * (0.8 + 0.1 / 1000));
    options.drop.rate = 0.1;
    CHECK(contains(message_of<UsageError>([&] { make_objective("mlm", options); }),
                   "cannot be combined"));
  }
}

TEST_CASE("tta has every position, clm the next one and of pairs the target") {
  const Sequence sequence(0, 5);  // 2 5 22 39 3
  const Example tta = make_objective("tta")->example(sequence.item(), 0);
  CHECK(tta.ids == Ids{2, 5, 22, 39, 3});
  CHECK(tta.rows == Rows{0, 1, 2, 3, 4});
  CHECK(tta.targets == tta.ids);
  CHECK_FALSE(tta.mask);
  const Example clm = make_objective("clm")->example(sequence.item(), 0);
  CHECK(clm.ids == tta.ids);
  CHECK(clm.rows == Rows{0, 1, 2, 3});
  CHECK(clm.targets == Ids{5, 22, 39, 3});
  Sequence pair = sequence;
  pair.segments = {0, 0, 0, 1, 1};
  ObjectiveOptions options = objective_options();
  options.pairs = true;
  const Example target = make_objective("clm", options)->example(pair.item(), 0);
  CHECK(target.rows == Rows{2, 3});
  CHECK(target.targets == Ids{39, 3});
  CHECK(target.segments == std::vector<Index>{0, 0, 0, 1, 1});
}

TEST_CASE("dropped tokens are gone before anything, and positions stay") {
  for (const std::string name : {"mlm", "tta", "clm", "unilm", "plm", "mae-mask"}) {
    CAPTURE(name);
    ObjectiveOptions options = objective_options();
    options.drop.rate = 0.25;
    const auto objective = make_objective(name, options);
    std::uint64_t kept = 0;
    for (std::uint64_t number = 0; number < 100; ++number) {
      const Sequence sequence(number, 102);
      const Example example = objective->example(sequence.item(), 0);
      REQUIRE(example.positions.size() == example.ids.size());
      kept += example.ids.size() - 2;
      CHECK(example.positions.front() == 0);
      CHECK(example.positions.back() == 101);
      if (name != "tta") continue;
      for (std::size_t i = 0; i < example.ids.size(); ++i) {
        CHECK(example.targets[i] == sequence.ids[static_cast<std::size_t>(example.positions[i])]);
      }
    }
    check_rate(kept, 100 * 100, 0.75);
    options.drop.rate = 1;
    CHECK(contains(message_of<UsageError>([&] { make_objective(name, options); }), "drop:"));
  }
}

}  // namespace
}  // namespace masque::train
