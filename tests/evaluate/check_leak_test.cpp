// The black-box leak check agrees with what mask-viz flow says of the masks, and names the place.
#include "evaluate/check/check_leak.hpp"

#include <doctest/doctest.h>

#include "mask/builtin.hpp"
#include "mask/flow.hpp"
#include "mask/zoo.hpp"
#include "support/model_cases.hpp"

namespace masque::evaluate {
namespace {

using kernel::Precision;

std::unique_ptr<model::Model> open_suspect(const std::string& name,
                                           model::ModelOptions options = {},
                                           Precision precision = Precision::kF64) {
  options.precision = precision;
  if (!options.mask_token_id) options.mask_token_id = 4;
  return model::open_model(MASQUE_TEST_DATA "/model/" + name, options);
}

CheckInput leak_input(Index n, Index vocabulary) {
  CheckInput input;
  for (Index i = 0; i < n; ++i) input.ids.push_back(static_cast<TokenId>((7 * i + 3) % vocabulary));
  return input;
}

LeakReport leaks_of(const model::Model& model, const CheckInput& input,
                    mask::Prediction prediction) {
  LeakRequest request;
  request.prediction = prediction;
  request.never = model.design().pad_token_id
                      ? std::optional(static_cast<TokenId>(*model.design().pad_token_id))
                      : std::nullopt;
  LeakReport report;
  check_leak(model, 0, input, request, report);
  return report;
}

/// What the model does when tokens are replaced is what the masks say.
void check_agreement(const model::Model& model, const mask::Mask& mask, mask::FlowRequest flow,
                     bool two_streams, const std::string& name) {
  CAPTURE(name);
  const Index n = mask.lengths().keys;
  const auto layers = static_cast<std::size_t>(model.design().num_hidden_layers);
  flow.layers.assign(layers, mask);
  const mask::Mask content = mask | mask::band({n, n}, 0, 0);
  if (two_streams) flow.content.assign(layers, content);
  CheckInput input = leak_input(n, model.design().vocab_size);
  input.mask = two_streams ? content : mask;
  if (two_streams) input.query_mask = mask;
  for (const mask::Prediction prediction : {mask::Prediction::kSelf, mask::Prediction::kNext}) {
    CAPTURE(static_cast<int>(prediction));
    // The flow's kNext is about the token after a position alone.
    flow.forbidden.clear();
    for (Index i = 0; i < n; ++i) {
      const bool self = prediction == mask::Prediction::kSelf;
      flow.forbidden.push_back({{self ? i : i + 1, self ? i + 1 : n}, {i, i + 1}});
    }
    const mask::FlowResult expected = mask::follow_flow(flow);
    const LeakReport found = leaks_of(model, input, prediction);
    REQUIRE(found.first_layer().has_value() == expected.leak.has_value());
    if (!expected.leak) continue;
    CHECK(*found.first_layer() == expected.leak->layer);
    const LayerLeaks& layer = found.layers[static_cast<std::size_t>(*found.first_layer() - 1)];
    CHECK(layer.first->token == expected.leak->path.front().position);
    CHECK(layer.first->position == expected.leak->path.back().position);
    CHECK(found.layers[layers - 1].pairs == expected.leak->pairs);
    CHECK(found.layers[layers].pairs == expected.leak->pairs);
  }
}

}  // namespace

TEST_CASE("replaced tokens and followed masks agree on every mask of the zoo") {
  const auto one = open_suspect("bert");
  const auto tta = open_suspect("tta");
  const auto two = open_suspect("xlnet_two_streams");
  int checked = 0;
  for (const mask::MaskKind* kind : mask::mask_kinds()) {
    if (kind->name == "explicit") continue;
    const mask::MaskExpression expression = mask::parse_mask(kind->example);
    const mask::Mask mask =
        expression.bind(expression.own_lengths().value_or(mask::Lengths{16, 16}));
    const std::string name(kind->name);
    check_agreement(*one, mask, {}, false, name);
    mask::FlowRequest fixed;
    fixed.keys = mask::KeySource::kInput;
    fixed.query = mask::QueryStart::kPosition;
    check_agreement(*tta, mask, fixed, false, name + " (T-TA)");
    mask::FlowRequest streams;
    streams.query = mask::QueryStart::kPosition;
    check_agreement(*two, mask, streams, true, name + " (two streams)");
    ++checked;
  }
  CHECK(checked >= 35);
}

TEST_CASE("a T-TA is clean bit by bit, and a causal model, and others are not") {
  for (const test::ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kF64}) {
      const auto model = open_suspect(one.name, {}, precision);
      const model::Design& design = model->design();
      const CheckInput input = leak_input(9, design.vocab_size);
      const LeakReport self = leaks_of(*model, input, mask::Prediction::kSelf);
      const LeakReport next = leaks_of(*model, input, mask::Prediction::kNext);
      CHECK(self.pairs == 9);
      CHECK(next.pairs == 36);
      CHECK(self.first_layer().has_value() == (design.streams != model::Streams::kFixedKeys));
      CHECK(next.first_layer().has_value() == (design.mask != model::DefaultMask::kCausal));
      if (!self.first_layer()) {
        for (const LayerLeaks& layer : self.layers) CHECK(layer.largest == 0);
      }
    }
  }
}

TEST_CASE("one broken layer is caught, and named") {
  struct Broken {
    const char* model;
    const char* mask;
    mask::Prediction prediction;
    Index layer, token, position;
  };
  for (const Broken& b :
       {Broken{"tta", "tta, full", mask::Prediction::kSelf, 2, 0, 0},
        Broken{"tta", "tta, tta | diagonal & ~prefix(5)", mask::Prediction::kSelf, 2, 5, 5},
        Broken{"gpt2", "causal, full", mask::Prediction::kNext, 2, 1, 0},
        Broken{"llama", "causal | window(1) & ~prefix(6), causal", mask::Prediction::kNext, 1, 6,
               5}}) {
    CAPTURE(std::string(b.mask));
    model::ModelOptions options;
    options.masks = mask::parse_mask_layers(b.mask);
    const auto model = open_suspect(b.model, options, Precision::kF32);
    const LeakReport found =
        leaks_of(*model, leak_input(12, model->design().vocab_size), b.prediction);
    REQUIRE(found.first_layer());
    CHECK(*found.first_layer() == b.layer);
    const auto& first = found.layers[static_cast<std::size_t>(b.layer - 1)].first;
    CHECK(first->token == b.token);
    CHECK(first->position == b.position);
  }
}

TEST_CASE("tolerance, limits and seeds do what they say") {
  const auto model = open_suspect("bert");
  const CheckInput input = leak_input(12, model->design().vocab_size);
  LeakRequest request;
  request.tokens = 4;
  LeakReport some;
  check_leak(*model, 3, input, request, some);
  CHECK(some.tokens == 4);
  CHECK(some.all_tokens == 12);
  CHECK(some.layers[0].pairs == 4);
  CHECK(some.layers[0].first->text == 3);
  LeakReport again;
  check_leak(*model, 3, input, request, again);
  CHECK(again.layers[0].largest == some.layers[0].largest);
  request.seed = 1;
  LeakReport other;
  check_leak(*model, 3, input, request, other);
  CHECK(other.layers[0].largest != some.layers[0].largest);
  request.tolerance = 1e9;
  LeakReport tolerant;
  check_leak(*model, 3, input, request, tolerant);
  CHECK(!tolerant.first_layer());
  CHECK(tolerant.layers[0].largest == other.layers[0].largest);
  request.prediction = mask::Prediction::kClean;
  CHECK_THROWS_AS(check_leak(*model, 3, input, request, tolerant), std::logic_error);
  request.prediction = mask::Prediction::kSelf;
  LeakReport empty;
  check_leak(*model, 0, {}, request, empty);
  CHECK(empty.texts == 1);
  CHECK(empty.tokens == 0);
}

}  // namespace masque::evaluate
