// The ways to write masks against plain loops over transformers' models
// (scripts/goldens/generate.py), and draws against the softmax.
#include "evaluate/write/masked_generation.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "evaluate/write/fill.hpp"
#include "fake_model.hpp"

namespace masque::evaluate {
namespace {

using model::HeadKind;

const std::string kMaskedData = MASQUE_TEST_DATA;
constexpr TokenId kHidden = 4;
constexpr Index kFakeTokens = 12;  // of a FakeModel

std::vector<TokenId> ids_in(const JsonValue& list) {
  std::vector<TokenId> out;
  for (const JsonValue& item : list.items) out.push_back(static_cast<TokenId>(*item.number()));
  return out;
}

MaskedText hidden_text(std::vector<TokenId> ids, std::uint64_t id = 0) {
  MaskedText text;
  text.id = id;
  text.sentence.ids = std::move(ids);
  text.places = places_of(text.sentence, kHidden);
  return text;
}

MaskedGenerateOptions options_of_way(std::string_view how, Index argument) {
  MaskedGenerateOptions options;
  options.how = named_value("how", how, masked_way_names());
  options.writer.never = {kHidden};
  switch (options.how) {
    case MaskedWay::kLeftToRight: options.lead_out = argument; break;
    case MaskedWay::kGibbs: options.sweeps = argument; break;
    case MaskedWay::kMaskPredict: options.iterations = argument; break;
    default: options.unmask_iterations = argument; break;
  }
  return options;
}

/// log p of the tokens at the places, each given all others.
double others_score(const std::vector<TokenId>& ids, const std::vector<Index>& places) {
  double sum = 0;
  for (const Index place : places) {
    sum += log_softmax(fake_logits(ids, place, kFakeTokens, [&](Index j) { return j != place; }),
                       ids[static_cast<std::size_t>(place)]);
  }
  return sum;
}

/// A model that does not look at the place that it predicts, as after a mask.
FakeModel others_model() { return FakeModel(HeadKind::kMasked, model::DefaultMask::kOthers); }

}  // namespace

TEST_CASE("every way writes what plain loops over transformers' models write") {
  const std::string path = kMaskedData + "/evaluate/generate.json";
  const JsonValue root = parse_json_file(read_text(path, 1 << 20), path);
  for (const JsonMember& of_model : root.find("masked")->members) {
    CAPTURE(of_model.name);
    const auto model = model::open_model(kMaskedData + "/model/" + of_model.name,
                                         {.precision = kernel::Precision::kF64});
    for (const JsonValue& one : of_model.value.items) {
      const MaskedText text = hidden_text(ids_in(*one.find("ids")));
      REQUIRE(text.places.size() == one.find("places")->items.size());
      std::set<std::string> ways;
      for (const JsonValue& expected : one.find("found")->items) {
        const std::string how = expected.text_of("how");
        CAPTURE(how);
        ways.insert(how);
        const auto options =
            options_of_way(how, static_cast<Index>(*expected.find("argument")->number()));
        const std::vector<Generated> found = generate_masked(*model, {&text, 1}, options);
        REQUIRE(found.size() == 1);
        CHECK(found[0].ids == ids_in(*expected.find("new")));
        CHECK(found[0].score == doctest::Approx(*expected.find("score")->number()).epsilon(1e-9));
      }
      // The ways of masked diffusion: unmask_test.cpp.
      const auto unmasks = [](const auto& way) { return unmask_order(way.second).has_value(); };
      CHECK(ways.size() +
                static_cast<std::size_t>(std::ranges::count_if(masked_way_names(), unmasks)) ==
            masked_way_names().size());
    }
  }
}

TEST_CASE("passes cost what the ways say") {
  const FakeModel model = others_model();
  const MaskedText text = hidden_text({1, kHidden, kHidden, kHidden, 3});
  const auto runs = [&](std::string_view how, Index argument) {
    const int before = model.runs;
    generate_masked(model, {&text, 1}, options_of_way(how, argument));
    return model.runs - before;
  };
  CHECK(runs("left-to-right", 9) == 3);
  CHECK(runs("gibbs", 4) == 12);
  CHECK(runs("mask-predict", 5) == 5);
}

TEST_CASE("Gibbs draws end where the conditionals say, in either order, whatever the batch") {
  const FakeModel model = others_model();
  // One mask: the last draw is independent of the others.
  std::vector<MaskedText> texts;
  for (std::uint64_t i = 0; i < 4000; ++i) texts.push_back(hidden_text({1, kHidden, 7}, i));
  MaskedGenerateOptions options = options_of_way("gibbs", 2);
  options.sampling = {.do_sample = true, .temperature = 1.5};
  options.seed = 3;
  std::vector<double> logits = fake_logits(std::vector<TokenId>{1, kHidden, 7}, 1, kFakeTokens,
                                           [](Index j) { return j != 1; });
  logits[kHidden] = -1e300;
  const std::vector<double> expected = sampling_probabilities(logits, options.sampling);
  std::vector<double> counts(expected.size());
  for (const Generated& g : generate_masked(model, texts, options))
    ++counts[static_cast<std::size_t>(g.ids[0])];
  CHECK(counts[kHidden] == 0);
  for (std::size_t v = 0; v < counts.size(); ++v) {
    const double mean = 4000 * expected[v];
    CHECK(std::abs(counts[v] - mean) <= 5 * std::sqrt(mean + 1));
  }
  for (const SweepOrder order : {SweepOrder::kSequential, SweepOrder::kRandom}) {
    options.order = order;
    options.num_return_sequences = 3;
    const std::vector<MaskedText> two{hidden_text({5, kHidden, kHidden, 2}, 6),
                                      hidden_text({5, kHidden, kHidden, 2}, 7)};
    const std::vector<Generated> together = generate_masked(model, two, options);
    MaskedGenerateOptions small = options;
    small.writer.batch_tokens = 1;
    const std::vector<Generated> alone = generate_masked(model, {&two[1], 1}, small);
    REQUIRE(together.size() == 6);
    for (std::size_t k = 0; k < 3; ++k) CHECK(together[3 + k].ids == alone[k].ids);
    CHECK((together[0].ids != together[1].ids || together[1].ids != together[2].ids));
  }
}

TEST_CASE("after its burn-in Gibbs takes the likeliest, and climbs") {
  const FakeModel model = others_model();
  MaskedGenerateOptions options = options_of_way("gibbs", 12);
  options.burn_in = 2;
  std::vector<MaskedText> texts;
  for (std::uint64_t i = 0; i < 8; ++i)
    texts.push_back(hidden_text({1, kHidden, kHidden, kHidden, 7}, i));
  for (const Generated& g : generate_masked(model, texts, options)) {
    std::vector<TokenId> ids{1, g.ids[0], g.ids[1], g.ids[2], 7};
    const double found = others_score(ids, {3});
    // The last token that was written is the likeliest of all but the mask.
    for (TokenId other = 0; other < kFakeTokens; ++other) {
      if (other == kHidden) continue;
      ids[3] = other;
      CHECK(others_score(ids, {3}) <= found + 1e-12);
    }
  }
  options.burn_in = 12;
  const auto drawn = generate_masked(model, texts, options);
  std::set<std::vector<TokenId>> different;
  for (const Generated& g : drawn) different.insert(g.ids);
  CHECK(different.size() > 1);
}

TEST_CASE("a random order writes every mask in each sweep") {
  MaskedGenerateOptions options = options_of_way("gibbs", 3);
  options.order = SweepOrder::kRandom;
  const MaskedText text = hidden_text({1, kHidden, kHidden, kHidden, kHidden, 3});
  const Draft draft(text, 0, RandomStream(0, "test"));
  std::set<std::vector<Index>> orders;
  for (Index sweep = 0; sweep < 3; ++sweep) {
    std::vector<Index> order;
    for (Index step = 0; step < 4; ++step) {
      const MaskedPass pass = next_pass(options, draft, 4 * sweep + step);
      REQUIRE(pass.masks.size() == 1);
      order.push_back(pass.masks[0]);
    }
    orders.insert(order);
    std::ranges::sort(order);
    CHECK(order == std::vector<Index>{0, 1, 2, 3});
  }
  CHECK(orders.size() > 1);
  CHECK(next_pass(options, draft, 12).masks.empty());
}

}  // namespace masque::evaluate
