// Soft-Masked BERT: the two losses, their gradients, and what is refused.
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "complex_step.hpp"
#include "electra_case.hpp"
#include "model/checkpoint/save.hpp"
#include "model/detector.hpp"
#include "support/message.hpp"
#include "train/loss/correction_loss.hpp"
#include "train/run/trainer.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

constexpr TokenId kRight = 9;  ///< even texts say it where some say another token

ObjectiveOptions wanted_options() {
  ObjectiveOptions requested;
  requested.seed = 6;
  requested.tokens = small_tokens();
  return requested;
}

DesignRecipe corrector_recipe() {
  DesignRecipe recipe;
  recipe.vocab_size = kVocabulary;
  recipe.num_hidden_layers = 2;
  recipe.hidden_size = 16;
  recipe.num_attention_heads = 2;
  recipe.max_position_embeddings = 20;
  return recipe;
}

/// Texts of which every third token is another one than it should be; the template has no label.
Corpus wrong_texts() {
  const Corpus right = small_corpus();
  Corpus corpus;
  for (Index i = 0; i < right.size(); ++i) {
    CorpusItem item = right.item(i);
    std::vector<TokenId> ids(item.ids.begin(), item.ids.end());
    std::vector<std::int32_t> labels(ids.begin(), ids.end());
    labels.front() = labels.back() = records::kNoLabel;
    for (std::size_t k = 1; k + 1 < ids.size(); k += 3)
      ids[k] = ids[k] == kRight ? TokenId{10} : kRight;
    item.ids = ids;
    item.labels = labels;
    corpus.add(item);
  }
  corpus.set_labels(LabelKind::kTokens);
  return corpus;
}

/// A network with its loss.
template <class T>
struct SoftMasked {
  model::Design design;
  Parameters<T> parameters;
  ParameterMap map;
  std::unique_ptr<CorrectionLoss<T>> loss;

  explicit SoftMasked(const DesignRecipe& recipe = corrector_recipe(), double size = 0.5,
                      double weight = 0.8) {
    design = design_of(recipe);
    adapt_correction(wanted_options(), detector_sizes(design, recipe, size, 1), design);
    const model::ModelPlan plan = model::saved_design(design).plan;
    map = add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    initialize_parameters(design, map, {.seed = 3, .initializer_range = 0.3}, parameters);
    loss = std::make_unique<CorrectionLoss<T>>(
        design, map, parameters,
        std::is_same_v<T, double> ? kernel::Precision::kF64 : kernel::Precision::kF32, weight);
    loss->prepare();
  }
};

/// The loss of a batch by its definition, by complex numbers.
Complex defined_loss(const SoftMasked<double>& of, std::span<const StepItem> items, double weight,
                     Parameters<Complex>& parameters) {
  Encoder<Complex> encoder(of.design, of.map, parameters, kernel::Precision::kF64);
  Head<Complex> head(of.design, of.map, parameters, kernel::Precision::kF64);
  encoder.prepare();
  head.prepare();
  Complex detection = 0, correction = 0;
  double rows = 0;
  for (const StepItem& one : items) {
    Example example;
    example.ids.assign(one.item.ids.begin(), one.item.ids.end());
    for (Index i = 0; i < example.size(); ++i) {
      const std::int32_t label = one.item.labels[static_cast<std::size_t>(i)];
      if (label == records::kNoLabel) continue;
      example.rows.push_back(i);
      example.targets.push_back(label);
    }
    ExampleChunk chunk;
    chunk.add(example);
    Tape<Complex> tape;
    Matrix<Complex> last(std::ssize(example.rows), of.design.hidden_size);
    encoder.forward(chunk, {}, tape, last.view());
    correction += head.run({last.view(), chunk.targets, chunk.weights}, {}).loss;
    for (std::size_t k = 0; k < example.rows.size(); ++k) {
      const Index row = example.rows[k];
      const Complex p = tape.soft_mask.probabilities.view().at(row, 0);
      const bool wrong = example.ids[static_cast<std::size_t>(row)] != example.targets[k];
      detection -= std::log(wrong ? p : 1.0 - p);
    }
    rows += static_cast<double>(example.rows.size());
  }
  return (weight * correction + (1 - weight) * detection) / rows;
}

std::vector<StepItem> some_items(const Corpus& corpus, Index count) {
  std::vector<StepItem> items;
  for (Index i = 0; i < count; ++i) items.push_back({corpus.item(i), 0});
  return items;
}

}  // namespace

TEST_CASE("correct: gradients of both losses are those of complex steps") {
  const Corpus corpus = wrong_texts();
  const std::vector<StepItem> items = some_items(corpus, 4);
  const auto check = [&](const DesignRecipe& recipe, double size, double weight) {
    CAPTURE(size);
    CAPTURE(weight);
    SoftMasked<double> model(recipe, size, weight);
    const StepLosses losses = model.loss->add_gradients(items, {});
    CHECK(losses.rows() == 46);
    check_gradients(
        model.parameters,
        [&](Parameters<Complex>& moved) {
          const Complex loss = defined_loss(model, items, weight, moved);
          CHECK(loss.real() == doctest::Approx(losses.mean()).epsilon(1e-12));
          return loss;
        },
        [](const Parameter&) { return true; });
  };
  check(corrector_recipe(), 0.5, 0.8);
  check(corrector_recipe(), 1, 0.3);
  check(corrector_recipe(), 0.5, 0);
  check(corrector_recipe(), 0.5, 1);
  DesignRecipe recipe = corrector_recipe();
  recipe.position = "rope";
  recipe.norm_placement = "pre";
  recipe.tie_word_embeddings = false;
  check(recipe, 0.5, 0.8);
  recipe = corrector_recipe();
  recipe.layer_kind = "gated_attention";
  recipe.attention_key_size = 4;
  check(recipe, 0.5, 0.8);
}

TEST_CASE("correct: both losses reach what they go through") {
  const Corpus corpus = wrong_texts();
  const auto largest = [&](double weight, std::string_view name) {
    SoftMasked<double> model(corrector_recipe(), 0.5, weight);
    model.loss->add_gradients(some_items(corpus, 4), {});
    for (Index i = 0; i < model.parameters.count(); ++i) {
      if (model.parameters[i].name != name) continue;
      double most = 0;
      for (Index k = 0; k < model.parameters[i].size(); ++k)
        most = std::max(most, std::abs(model.parameters.gradient(i).data[k]));
      return most;
    }
    return -1.0;
  };
  // The correction alone: through the mixture into the detector.
  CHECK(largest(1, "detector.head.decoder.weight") > 1e-6);
  CHECK(largest(1, "detector.layers.0.attention.query.weight") > 1e-9);
  // The detection alone: not into the layers, but into the embeddings.
  CHECK(largest(0, "layers.1.feed_forward.up.weight") == 0);
  CHECK(largest(0, "embeddings.word.weight") > 1e-6);
}

TEST_CASE("correct: counts, and what a detector without doubt does") {
  const Corpus corpus = wrong_texts();
  const std::vector<StepItem> items = some_items(corpus, corpus.size());
  for (const double bias : {50.0, -50.0}) {
    CAPTURE(bias);
    SoftMasked<double> model;
    const Index at = model.map.detector().bias(model::Role::kDecoder);
    model.parameters.value(at).at(0, 0) = bias;
    model.loss->prepare();
    const StepLosses losses = model.loss->evaluate(items);
    REQUIRE(losses.parts.size() == 2);
    CHECK(losses.parts[0].name == "detection");
    CHECK(losses.parts[1].name == "correction");
    Index wrong = 0, rows = 0;
    for (const StepItem& one : items) {
      for (std::size_t i = 1; i + 1 < one.item.ids.size(); ++i) {
        ++rows;
        wrong += one.item.ids[i] == one.item.labels[i] ? 0 : 1;
      }
    }
    REQUIRE(losses.shares.size() == 4);
    const bool all = bias > 0;
    CHECK(losses.shares[0].name == "error_rate");
    CHECK(losses.shares[0].count == wrong);
    CHECK(losses.shares[0].of == rows);
    CHECK(losses.shares[1].of == (all ? rows : 0));
    CHECK(losses.shares[2].count == (all ? wrong : 0));
    CHECK(losses.shares[2].of == wrong);
    CHECK(losses.parts[0].report.correct == (all ? wrong : rows - wrong));
  }
}

TEST_CASE("correct: chunks change nothing, dropout is drawn by step, training lowers the loss") {
  const Corpus corpus = wrong_texts();
  const std::vector<StepItem> items = some_items(corpus, corpus.size());
  SoftMasked<double> whole, parts;
  parts.loss->chunk_rows = 1;
  DropoutOptions dropout;
  dropout.hidden_dropout = 0.2;
  dropout.seed = 4;
  const StepLosses together = whole.loss->add_gradients(items, dropout);
  const StepLosses apart = parts.loss->add_gradients(items, dropout);
  CHECK(apart.mean() == doctest::Approx(together.mean()).epsilon(1e-12));
  for (std::size_t k = 0; k < whole.parameters.gradients().size(); ++k)
    CHECK(std::abs(whole.parameters.gradients()[k] - parts.parameters.gradients()[k]) < 1e-12);
  CHECK(std::abs(whole.loss->evaluate(items).mean() - together.mean()) > 1e-6);
  SoftMasked<float> model;
  TrainerOptions options;
  options.schedule = {.learning_rate = 5e-3, .steps = 60};
  options.batch_size = 6;
  Trainer trainer(*model.loss, model.parameters, corpus, options);
  const double before = train::evaluate(*model.loss, corpus, 0).mean();
  for (int i = 0; i < 60; ++i) trainer.step();
  const StepLosses after = train::evaluate(*model.loss, corpus, 0);
  CHECK(after.mean() < 0.6 * before);
  CHECK(after.shares[3].count > after.shares[3].of / 2);
}

TEST_CASE("correct: what cannot be is refused") {
  const auto refused = [](const std::function<void(DesignRecipe&)>& change, double size) {
    DesignRecipe recipe = corrector_recipe();
    change(recipe);
    return message_of<UsageError>([&] { SoftMasked<double>(recipe, size); });
  };
  CHECK(contains(refused([](DesignRecipe&) {}, 0), "detector_size"));
  CHECK(contains(refused([](DesignRecipe& r) { r.position = "convolutional"; }, 0.5),
                 "acts on the input"));
  // The detector has fewer layers, but no late positions either.
  const auto late = [](DesignRecipe& r) { r.late_positions = 2; };
  CHECK(refused(late, 0.5) == "(nothing thrown)");
  const SoftMasked<double> model;
  CHECK(contains(message_of([&] { model.loss->check(small_corpus()); }), "without labels"));
  model::Design design = model.design;
  design.mask_token_id.reset();
  CHECK(contains(message_of<UsageError>([&] { model::detector_design(design); }), "mask token"));
  design = model.design;
  design.streams = model::Streams::kFixedKeys;
  CHECK(contains(message_of<UsageError>([&] { model::detector_design(design); }), "streams"));
  design = model.design;
  design.mask = model::DefaultMask::kCausal;
  CHECK(contains(message_of<UsageError>([&] { model::detector_design(design); }), "a mask"));
}

}  // namespace masque::test
