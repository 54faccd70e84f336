// Texts with labels as examples: whole, with tokens dropped, under a mask.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "train/classify/classify_run.hpp"
#include "train_case.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

model::Design labelled_design() {
  model::Design design;
  design.max_position_embeddings = 12;
  design.type_vocab_size = 2;
  return design;
}

ClassifyTextOptions dropping_options(double rate) {
  ClassifyTextOptions options;
  options.drop.rate = rate;
  options.seed = 3;
  options.tokens = token_table();
  return options;
}

}  // namespace

TEST_CASE("a text is judged whole, and learnt without other tokens in each epoch") {
  const Sequence text(7, 12);
  const ClassifyExamples examples(dropping_options(0.5), ClassifierPooling::kMean,
                                  labelled_design());
  const Example whole = examples.whole(text.item(), {.label = 1});
  CHECK(whole.ids == text.ids);
  CHECK(whole.positions.empty());
  CHECK(whole.rows.size() == 12);
  CHECK(whole.targets == std::vector<TokenId>(12, 1));
  CHECK_FALSE(whole.mask);
  std::set<std::vector<TokenId>> different;
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    const Example some = examples.dropped(text.item(), epoch, {.label = 1});
    different.insert(some.ids);
    REQUIRE(some.positions.size() == some.ids.size());
    for (std::size_t i = 0; i < some.ids.size(); ++i)
      CHECK(some.ids[i] == text.ids[static_cast<std::size_t>(some.positions[i])]);
    CHECK(std::ranges::is_sorted(some.positions));
    CHECK(some.rows.size() == some.ids.size());
    CHECK(some.ids.front() == 2);
    CHECK(some.ids.back() == 3);
    CHECK(examples.dropped(text.item(), epoch, {.label = 1}).ids == some.ids);
  }
  CHECK(different.size() > 4);
  ClassifyTextOptions none = dropping_options(0);
  CHECK(ClassifyExamples(none, ClassifierPooling::kFirst, labelled_design())
            .dropped(text.item(), 3, {.label = 0})
            .ids == text.ids);
}

TEST_CASE("a mask is one of the tokens that are left, and fits the pooling") {
  const Sequence text(7, 12);
  ClassifyTextOptions options = dropping_options(0.5);
  options.mask = "window(1)";
  const ClassifyExamples examples(options, ClassifierPooling::kFirst, labelled_design());
  for (const Example& example : {examples.whole(text.item(), {.label = 0}),
                                 examples.dropped(text.item(), 0, {.label = 0})}) {
    REQUIRE(example.mask);
    CHECK(bits_of(example.mask, example.size()) == bits_of("window(1)", example.size()));
    CHECK(example.rows == std::vector<Index>{0});
  }
  Corpus corpus;
  corpus.add(text.ids);
  examples.check(corpus);
  options.mask = "causal";
  CHECK(message_of<UsageError>([&] {
          ClassifyExamples(options, ClassifierPooling::kFirst, labelled_design()).check(corpus);
        }) == "pooling cls: with mask causal the first token reads only itself; use mean");
  ClassifyExamples(options, ClassifierPooling::kMean, labelled_design()).check(corpus);
  options.mask = "nothing_such";
  CHECK(contains(message_of<UsageError>([&] {
                   ClassifyExamples(options, ClassifierPooling::kMean, labelled_design());
                 }),
                 "nothing_such"));
  corpus.add(Sequence(8, 13).ids);
  CHECK(contains(message_of<UsageError>([&] { examples.check(corpus); }), "expected at most 12"));
}

}  // namespace masque::test
