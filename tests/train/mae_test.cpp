// Masked autoencoding with a decoder.
#include <array>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "complex_step.hpp"
#include "electra_case.hpp"
#include "support/message.hpp"
#include "train/loss/mae_loss.hpp"
#include "train/run/starting_design.hpp"
#include "train/run/trainer.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

ObjectiveOptions small_options() {
  ObjectiveOptions requested;
  requested.seed = 6;
  requested.tokens = small_tokens();
  requested.mae.ratio = 0.6;
  return requested;
}

DesignRecipe small_recipe() {
  DesignRecipe recipe;
  recipe.vocab_size = kVocabulary;
  recipe.num_hidden_layers = 2;
  recipe.hidden_size = 16;
  recipe.num_attention_heads = 2;
  recipe.max_position_embeddings = 20;
  return recipe;
}

/// Two networks with their loss.
template <class T>
struct Coder {
  MaeModel model;
  Parameters<T> parameters;
  std::unique_ptr<MaeLoss<T>> loss;

  explicit Coder(const DesignRecipe& recipe = small_recipe(), double size = 0.5) {
    const ObjectiveOptions requested = small_options();
    model.encoder = design_of(recipe);
    adapt_mae(requested, model.encoder);
    model.decoder = decoder_design(decoder_recipe(recipe, size, 1), requested, model.encoder);
    add_mae(model, parameters);
    const StartOptions start{.seed = 3, .initializer_range = 0.3};
    initialize_parameters(model.decoder, model.decoder_map, start, parameters);
    initialize_parameters(model.encoder, model.encoder_map, start, parameters);
    loss = std::make_unique<MaeLoss<T>>(
        requested, model, parameters,
        std::is_same_v<T, double> ? kernel::Precision::kF64 : kernel::Precision::kF32);
    loss->prepare();
  }
};

/// The mean loss of hidden tokens, sequence by sequence, by complex numbers.
Complex plain_loss(const MaeModel& model, std::span<const StepItem> items,
                   Parameters<Complex>& parameters) {
  const auto objective = find_objective("mae-mask").make(small_options());
  Encoder<Complex> encoder(model.encoder, model.encoder_map, parameters, kernel::Precision::kF64);
  Encoder<Complex> decoder(model.decoder, model.decoder_map, parameters, kernel::Precision::kF64);
  Head<Complex> head(model.decoder, model.decoder_map, parameters, kernel::Precision::kF64);
  encoder.prepare();
  decoder.prepare();
  head.prepare();
  Complex sum = 0;
  double rows = 0;
  for (const StepItem& item : items) {
    const MaeExamples examples = mae_examples(objective->example(item.item, item.epoch));
    ExampleChunk kept, all;
    kept.add(examples.encoder);
    all.add(examples.decoder);
    all.given = examples.given;
    Tape<Complex> encoder_tape, tape;
    tape.given.resize(kept.rows(), model.encoder.hidden_size);
    encoder.forward(kept, {}, encoder_tape, tape.given.view());
    Matrix<Complex> last(std::ssize(all.wanted), model.decoder.hidden_size);
    decoder.forward(all, {}, tape, last.view());
    sum += head.run({last.view(), all.targets, all.weights}, {}).loss;
    rows += static_cast<double>(all.wanted.size());
  }
  return sum / rows;
}

}  // namespace

TEST_CASE("mae: the encoder reads what is kept, the decoder predicts the rest") {
  Example hidden;
  hidden.ids = {2, 9, 4, 4, 3};
  hidden.segments = {0, 0, 0, 1, 1};
  hidden.rows = {2, 3};
  hidden.targets = {11, 12};
  hidden.mask = mask::parse_mask("causal").bind({5, 5});
  const MaeExamples examples = mae_examples(hidden);
  CHECK(examples.encoder.ids == std::vector<TokenId>{2, 9, 3});
  CHECK(examples.encoder.positions == std::vector<Index>{0, 1, 4});
  CHECK(examples.encoder.segments == std::vector<Index>{0, 0, 1});
  CHECK(examples.encoder.rows == std::vector<Index>{0, 1, 2});
  CHECK_FALSE(examples.encoder.mask);
  CHECK(examples.decoder.ids == hidden.ids);
  CHECK(examples.decoder.rows == hidden.rows);
  CHECK(examples.decoder.targets == hidden.targets);
  CHECK_FALSE(examples.decoder.mask);
  CHECK(examples.given == std::vector<Index>{0, 1, 4});
}

/// Compares the states of kept tokens alone with those of the whole text under a mask that hides
/// the others.
void check_kept_states(const model::Design& design, const ParameterMap& map,
                       Parameters<double>& parameters) {
  const auto objective = find_objective("mae-mask").make(small_options());
  const Corpus corpus = small_corpus();
  Encoder<double> encoder(design, map, parameters, kernel::Precision::kF64);
  encoder.prepare();
  for (const StepItem& item : items_of(corpus)) {
    Example masked = objective->example(item.item, 0);
    const MaeExamples examples = mae_examples(masked);
    CHECK(masked.rows.size() ==
          static_cast<std::size_t>(std::lround(0.6 * static_cast<double>(masked.size() - 2))));
    masked.rows = examples.given;
    masked.targets = examples.encoder.targets;
    std::array<Matrix<double>, 2> states;
    for (const std::size_t kept : {0U, 1U}) {
      ExampleChunk chunk;
      chunk.add(kept == 1 ? examples.encoder : masked);
      Tape<double> tape;
      states[kept].resize(std::ssize(examples.given), design.hidden_size);
      encoder.forward(chunk, {}, tape, states[kept].view());
    }
    for (std::size_t k = 0; k < states[0].span().size(); ++k)
      CHECK(std::abs(states[0].span()[k] - states[1].span()[k]) <= 1e-12);
  }
}

TEST_CASE("mae: what is kept has the states that a column mask gives") {
  Coder<double> coder;
  check_kept_states(coder.model.encoder, coder.model.encoder_map, coder.parameters);
}

TEST_CASE("mae: windows and relative positions go by the positions that are kept") {
  for (const char* name : {"modernbert", "mpnet", "deberta_v3", "t5_encoder", "xlnet"}) {
    CAPTURE(name);
    const model::StartingModel start(std::string(MASQUE_TEST_DATA "/model/") + name);
    model::Design design = starting_design(start);
    adapt_starting_design(
        start, [](model::Design& one) { adapt_mae(small_options(), one); }, design);
    // Narrow ones, which show fewer tokens by positions than by places.
    for (model::LayerDesign& layer : design.layers) {
      if (layer.window) layer.window = 1;
    }
    Parameters<double> parameters;
    const ParameterMap map =
        add_model(start.saved_design(start.design()).plan, nullptr, "", ParameterMap(), parameters);
    initialize_parameters(design, map, {.seed = 3, .initializer_range = 0.3}, parameters);
    check_kept_states(design, map, parameters);
  }
}

TEST_CASE("mae: gradients are those of complex steps") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus, 2);
  const auto check = [&](const DesignRecipe& recipe, double size) {
    Coder<double> coder(recipe, size);
    const StepLosses losses = coder.loss->add_gradients(items, {});
    CHECK(losses.rows() > 60);
    check_gradients(
        coder.parameters,
        [&](Parameters<Complex>& moved) {
          const Complex loss = plain_loss(coder.model, items, moved);
          CHECK(loss.real() == doctest::Approx(losses.mean()).epsilon(1e-12));
          return loss;
        },
        [](const Parameter&) { return true; });
  };
  check(small_recipe(), 0.5);
  check(small_recipe(), 1);
  DesignRecipe recipe = small_recipe();
  recipe.position = "rope";
  recipe.norm_placement = "pre";
  recipe.normalizer = "log_n";
  recipe.tie_word_embeddings = false;
  check(recipe, 0.5);
  recipe = small_recipe();
  recipe.layer_kind = "gated_attention";
  recipe.attention_key_size = 4;
  check(recipe, 0.5);
}

TEST_CASE("mae: chunks change nothing, training lowers the loss") {
  const Corpus corpus = small_corpus();
  const std::vector<StepItem> items = items_of(corpus);
  Coder<double> whole, parts;
  parts.loss->chunk_rows = 1;
  const StepLosses together = whole.loss->add_gradients(items, {});
  const StepLosses apart = parts.loss->add_gradients(items, {});
  CHECK(apart.mean() == doctest::Approx(together.mean()).epsilon(1e-12));
  CHECK(whole.loss->evaluate(items).mean() == together.mean());
  for (std::size_t k = 0; k < whole.parameters.gradients().size(); ++k)
    CHECK(std::abs(whole.parameters.gradients()[k] - parts.parameters.gradients()[k]) < 1e-12);
  Coder<float> coder;
  TrainerOptions options;
  options.schedule = {.learning_rate = 5e-3, .steps = 60};
  options.batch_size = 6;
  Trainer trainer(*coder.loss, coder.parameters, corpus, options);
  const double before = train::evaluate(*coder.loss, corpus, 0).mean();
  for (int i = 0; i < 60; ++i) trainer.step();
  CHECK(train::evaluate(*coder.loss, corpus, 0).mean() < 0.8 * before);
}

TEST_CASE("mae: what cannot be is refused") {
  const auto refused = [](const DesignRecipe& recipe, double size) {
    return message_of<UsageError>([&] { Coder<double>(recipe, size); });
  };
  CHECK(contains(refused(small_recipe(), 0), "decoder_size"));
  DesignRecipe recipe = small_recipe();
  recipe.mixer = "fnet";
  CHECK(contains(refused(recipe, 1), "order in the encoder's input"));
  Corpus pairs;
  pairs.add(std::vector<TokenId>{2, 9, 3}, std::vector<std::uint8_t>{0, 0, 1});
  const Coder<double> coder;
  CHECK(contains(message_of([&] { coder.loss->check(pairs); }), "two segments"));
}

}  // namespace masque::test
