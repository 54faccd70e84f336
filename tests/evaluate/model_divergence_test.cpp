// Two models on the same texts: a small Llama and its quantised copies, as transformers computes
// both in float64.
#include "evaluate/states/model_divergence.hpp"

#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "fake_model.hpp"
#include "store/checkpoint.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using test::contains;
using test::message_of;

const std::string kFolder = MASQUE_TEST_DATA "/quantised/";
constexpr std::size_t kTexts = 6, kLength = 11, kLayers = 2, kHeads = 4;

/// Transformers keeps the frequencies of rotary angles in float, whatever the precision.
constexpr double kRotaryRounding = 1e-5;

template <class Number>
std::vector<Number> golden_numbers(const store::Checkpoint& file, const std::string& name) {
  const store::TensorInfo& info = file.get(name);
  std::vector<Number> out(info.elements());
  file.read(info, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

DivergenceRequest everything(Index batch_tokens = 8192) {
  return {{ComparedPart::kStates, ComparedPart::kAttention, ComparedPart::kPredictions},
          true,
          batch_tokens};
}

void add_texts(const store::Checkpoint& golden, ModelDivergence& found) {
  const auto ids = golden_numbers<std::int32_t>(golden, "ids");
  REQUIRE(ids.size() == kTexts * kLength);
  for (std::size_t i = 0; i < kTexts; ++i) {
    Sequence text{.number = i, .ids = {}};
    for (std::size_t t = 0; t < kLength; ++t) text.ids.push_back(ids[i * kLength + t]);
    found.add(text, text);
  }
  found.flush();
}

/// Mean and Student's interval of sums of `count` numbers a text.
void check_mean(const DivergenceRow& row, const std::vector<double>& sums, double count,
                bool perplexity = false) {
  REQUIRE(sums.size() == kTexts);
  std::vector<double> means;
  for (const double sum : sums) means.push_back(sum / count);
  const Summary expected = summarise(means);
  const auto is = [&](double x, double y) {
    CHECK(x == doctest::Approx(perplexity ? std::exp(y) : y).epsilon(kRotaryRounding));
  };
  is(row.value(), expected.mean);
  CHECK(row.numbers.mean.lines == kTexts);
  CHECK(row.numbers.mean.counts == count * static_cast<double>(kTexts));
  REQUIRE((expected.interval && row.interval()));
  if (perplexity || expected.interval->low > 0) is(row.interval()->low, expected.interval->low);
  if (perplexity || expected.interval->high < 1) is(row.interval()->high, expected.interval->high);
}

/// Numbers `first`, `first` + `step` … of `all`: those of each text.
std::vector<double> every(const std::vector<double>& all, std::size_t first, std::size_t step) {
  std::vector<double> out;
  for (std::size_t i = first; i < all.size(); i += step) out.push_back(all[i]);
  return out;
}

TEST_CASE("a quantised copy is as far from its model as in transformers") {
  const auto source = model::open_model(kFolder + "source", {.precision = kernel::Precision::kF64});
  for (const std::string copy : {"q8_0", "q4_0"}) {
    CAPTURE(copy);
    const auto other =
        model::open_model(kFolder + copy + ".gguf", {.precision = kernel::Precision::kF64});
    const store::Checkpoint golden = store::open_checkpoint(kFolder + copy + ".errors.safetensors");
    const auto numbers = [&](const std::string& name) {
      return golden_numbers<double>(golden, name);
    };
    // All texts together, two of them, and each alone.
    for (const Index batch_tokens : {8192, 2 * 11, 1}) {
      ModelDivergence found(*source, *other, everything(batch_tokens));
      add_texts(golden, found);
      const auto rows = found.rows();
      REQUIRE(rows.size() == 2 * (kLayers + 1) + kLayers * (1 + kHeads) + 5);
      std::size_t at = 0;
      constexpr auto kTokens = static_cast<double>(kLength);
      const auto largest = numbers("distance_largest");
      for (std::size_t state = 0; state <= kLayers; ++state, ++at) {
        CHECK(rows[at].measure == DivergenceMeasure::kDistance);
        CHECK(rows[at].layer == static_cast<Index>(state));
        check_mean(rows[at], every(numbers("distance"), state, kLayers + 1), kTokens);
        CHECK(rows[at].worst().value() ==
              doctest::Approx(std::ranges::max(every(largest, state, kLayers + 1)))
                  .epsilon(kRotaryRounding));
      }
      for (std::size_t state = 0; state <= kLayers; ++state, ++at) {
        CHECK(rows[at].measure == DivergenceMeasure::kCosine);
        check_mean(rows[at], every(numbers("cosine"), state, kLayers + 1), kTokens);
        CHECK(rows[at].worst().value() < rows[at].value());
      }
      const auto attention = numbers("attention");
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        const DivergenceRow& whole = rows[at++];
        CHECK(whole.measure == DivergenceMeasure::kAttention);
        CHECK_FALSE(whole.head.has_value());
        double mean = 0, worst = 0;
        for (std::size_t head = 0; head < kHeads; ++head, ++at) {
          CHECK(rows[at].layer == static_cast<Index>(layer));
          CHECK(rows[at].head == static_cast<Index>(head));
          check_mean(rows[at], every(attention, layer * kHeads + head, kLayers * kHeads), kTokens);
          mean += rows[at].value() / static_cast<double>(kHeads);
          worst = std::max(worst, rows[at].worst().value());
        }
        CHECK(whole.value() == doctest::Approx(mean).epsilon(1e-12));
        CHECK(whole.worst() == worst);
      }
      constexpr double kPredicted = kTokens - 1;
      check_mean(rows[at++], numbers("kl"), kPredicted);
      check_mean(rows[at++], numbers("agreement"), kPredicted);
      const auto loss = numbers("loss"), against = numbers("loss_against");
      check_mean(rows[at++], loss, kPredicted, true);
      check_mean(rows[at++], against, kPredicted, true);
      std::vector<double> change;
      for (std::size_t i = 0; i < kTexts; ++i) change.push_back(against[i] - loss[i]);
      check_mean(rows[at], change, kPredicted, true);
      CHECK(rows[at].measure == DivergenceMeasure::kPerplexityRatio);
      CHECK_FALSE(rows[at].worst().has_value());
    }
  }
}

TEST_CASE("a model is no distance from itself") {
  const auto source = model::open_model(kFolder + "source");
  ModelDivergence found(*source, *source, everything());
  add_texts(store::open_checkpoint(kFolder + "q8_0.errors.safetensors"), found);
  for (const DivergenceRow& row : found.rows()) {
    const std::string name(name_in(divergence_measure_names(), row.measure));
    CAPTURE(name);
    const bool one = name == "agreement" || name == "cosine" || name == "perplexity_ratio";
    if (name == "perplexity" || name == "perplexity_against") {
      CHECK(row.value() > 1);
    } else {
      CHECK(row.value() == doctest::Approx(one ? 1 : 0).epsilon(1e-12));
      CHECK(row.interval()->low == doctest::Approx(one ? 1 : 0).epsilon(1e-12));
    }
  }
}

TEST_CASE("only what is asked for is compared, and predictions between prefix and suffix") {
  const FakeModel model(model::HeadKind::kMasked);
  DivergenceRequest request;
  request.parts = {ComparedPart::kPredictions};
  ModelDivergence found(model, model, request);
  const Sequence text{.number = 0, .ids = {1, 5, 6, 7, 2}, .prefix = 1, .suffix = 1};
  found.add(text, text);
  found.flush();
  const auto rows = found.rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].measure == DivergenceMeasure::kKl);
  CHECK(rows[1].numbers.mean.counts == 3);
  CHECK_FALSE(rows[0].interval().has_value());
  const FakeModel headless(model::HeadKind::kNone);
  CHECK(ModelDivergence(headless, headless, request).rows().empty());
}

TEST_CASE("models of different shapes are not compared") {
  const FakeModel model(model::HeadKind::kCausal);
  const auto message = [&](const FakeModel& other) {
    return message_of([&] { ModelDivergence(model, other, everything()); });
  };
  FakeModel other(model::HeadKind::kCausal);
  other.design_to_change().num_hidden_layers = 3;
  CHECK(message(other) == "layers: 3, expected 2, as the other model has");
  other.design_to_change() = model.design();
  other.design_to_change().vocab_size = 13;
  CHECK(message(other) == "vocabulary: 13, expected 12, as the other model has");
  other.design_to_change() = model.design();
  other.design_to_change().num_attention_heads = 1;
  CHECK(message(other) == "heads: 1, expected 2, as the other model has");
  other.design_to_change() = model.design();
  other.design_to_change().hidden_size = 4;
  CHECK(message(other) == "hidden size: 4, expected 3, as the other model has");
  CHECK(message(FakeModel(model::HeadKind::kMasked)) ==
        "a masked head, expected a causal head, as the other model has");
  const FakeModel towers(model::HeadKind::kCausal, model::DefaultMask::kFull, model::Streams::kTwo);
  CHECK(contains(message(towers), "streams"));
}

}  // namespace
}  // namespace masque::evaluate
