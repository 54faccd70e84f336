// Masks that fit a corpus or not, and rows that may read what they predict.
#include "train/run/mask_check.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "model/masks.hpp"
#include "support/message.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

using test::contains;
using test::message_of;

Corpus lengths_of(const std::vector<std::size_t>& lengths) {
  Corpus corpus;
  std::uint64_t number = 0;
  for (const std::size_t n : lengths) corpus.add(test::Sequence(number++, n).ids);
  return corpus;
}

model::Design design_with(const std::string& mask, const Objective& objective) {
  model::Design design;
  design.num_hidden_layers = 2;
  design.layers.resize(2);
  objective.adapt(design);
  model::set_mask(mask, design);
  return design;
}

std::optional<ReadTarget> read(const std::string& name, const std::string& mask) {
  const Corpus corpus = lengths_of({6, 9, 6});
  const auto objective = test::make_objective(name);
  return find_read_target(design_with(mask, *objective), *objective, corpus);
}

TEST_CASE("masks that let a row read its target, by themselves or through others") {
  for (const char* mask :
       {"tta", "tta_window(2)", "disco(3)", "causal & tta", "tta, tta_window(1)"}) {
    CAPTURE(mask);
    CHECK_FALSE(read("tta", mask));
  }
  for (const char* mask : {"full", "causal", "tta, full", "tta | keep(5)", "~diagonal | keep(2)"}) {
    CAPTURE(mask);
    CHECK(read("tta", mask));
  }
  for (const char* mask : {"causal", "causal_window(2)", "strict_causal", "sinks(1,2), causal"}) {
    CAPTURE(mask);
    CHECK_FALSE(read("clm", mask));
  }
  for (const char* mask : {"full", "reverse", "tta", "causal | prefix(2)", "causal, window(1)"}) {
    CAPTURE(mask);
    CHECK(read("clm", mask));
  }
  const auto found = read("tta", "tta | keep(5)");
  REQUIRE(found);
  CHECK(found->sequence == 0);
  CHECK(found->row == 5);
  CHECK(found->token == 5);
  CHECK_FALSE(read("mlm", "full"));
}

TEST_CASE("through other rows: a causal mask under targets of pairs alone") {
  Corpus corpus;
  const test::Sequence sequence(1, 6);
  const std::vector<std::uint8_t> segments{0, 0, 0, 1, 1, 1};
  corpus.add(sequence.ids, segments);
  ObjectiveOptions options = test::objective_options();
  options.pairs = true;
  const auto objective = test::make_objective("clm", options);
  // The source is read whole; the target from left to right.
  CHECK_FALSE(find_read_target(design_with("causal | prefix(3)", *objective), *objective, corpus));
  CHECK(find_read_target(design_with("causal | prefix(4)", *objective), *objective, corpus));
}

TEST_CASE("labels that their rows read are no task") {
  const auto learn = [](const std::vector<std::int32_t>& labels, const std::string& mask,
                        model::Streams streams) {
    Corpus corpus;
    const std::vector<TokenId> ids{5, 6, 7, 8};
    CorpusItem item;
    item.ids = ids;
    item.labels = labels;
    item.mask = mask;
    corpus.add(item);
    corpus.set_labels(LabelKind::kTokens);
    ObjectiveOptions options = test::objective_options();
    options.records = record_needs(corpus);
    options.records.streams = streams;
    const auto objective = test::make_objective("records", options);
    model::Design design;
    design.num_hidden_layers = 1;
    design.layers.resize(1);
    objective->adapt(design);
    return find_read_target(design, *objective, corpus);
  };
  using model::Streams;
  CHECK(learn({5, 6, 7, 8}, "", Streams::kOne));
  CHECK(learn({5, -100, -100, -100}, "", Streams::kOne));
  CHECK_FALSE(learn({5, 9, 7, 8}, "", Streams::kOne));
  CHECK_FALSE(learn({5, 6, 7, 8}, "", Streams::kFixedKeys));
  CHECK(learn({5, 6, 7, 8}, "full", Streams::kFixedKeys));
  CHECK(learn({6, 7, 8, -100}, "", Streams::kOne));
  CHECK_FALSE(learn({6, 7, 8, -100}, "causal", Streams::kOne));
  CHECK_FALSE(learn({-100, 5, 6, 7}, "reverse", Streams::kOne));
  CHECK(learn({-100, 5, 6, 7}, "causal", Streams::kOne));
  CHECK_FALSE(learn({-100, 6, 7, 8}, "xlnet_order(1,2,3)", Streams::kTwo));
}

TEST_CASE("masks must fit every length") {
  const auto objective = test::make_objective("tta");
  const auto check = [&](const std::string& mask, const Corpus& corpus, bool shorter) {
    check_mask_lengths(design_with(mask, *objective), corpus, shorter);
  };
  check("document(2,4)", lengths_of({6, 6}), false);
  check("tta_word & keep(1)", lengths_of({6, 9}), false);
  check("tta", lengths_of({6, 9}), true);
  CHECK(contains(message_of<UsageError>([&] {
                   check("document(2,4)", lengths_of({6, 9}), false);
                 }),
                 "mask 'document(2,4)' for a sequence of 9 tokens: the mask is for 6 × 6 tokens"));
  CHECK(contains(message_of<UsageError>([&] {
                   check("keep(4), tta", lengths_of({9, 4}), false);
                 }),
                 "mask 'keep(4)' for a sequence of 4 tokens: "));
  check("keep(4)", lengths_of({6}), false);
  CHECK(contains(message_of<UsageError>([&] { check("keep(4)", lengths_of({6}), true); }),
                 "for a sequence of 1 tokens"));
}

TEST_CASE("masks under which what is left to predict is the next token") {
  for (const char* mask :
       {"causal", "causal_window(2)", "causal & document(3,5)", "causal, causal"}) {
    CAPTURE(mask);
    CHECK(ends_with_itself(mask));
  }
  for (const char* mask : {"full", "tta", "tta & causal", "window(2)", "causal, full", "unilm(2,3)",
                           "tta_word", "nonsense", "causal("}) {
    CAPTURE(mask);
    CHECK_FALSE(ends_with_itself(mask));
  }
}

TEST_CASE("which masks parts of a design must obey") {
  model::Design design;
  design.num_hidden_layers = 2;
  design.layers.resize(2);
  CHECK(mask_need(design) == nn::MaskSupport::kFull);
  model::set_mask("causal", design);
  CHECK(mask_need(design) == nn::MaskSupport::kCausal);
  for (const char* mask : {"tta", "window(3)", "full, causal"}) {
    model::set_mask(mask, design);
    CHECK(mask_need(design) == nn::MaskSupport::kAny);
  }
  CHECK(layers_text(design.variants.masks) == "full, causal");
  CHECK(design.mask == model::DefaultMask::kFull);
  CHECK(contains(message_of<UsageError>([&] { model::set_mask("3*tta", design); }), "3 layers"));
}

}  // namespace
}  // namespace masque::train
