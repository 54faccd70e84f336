// What is saved is what is loaded: designs, weights, and the family that fits best.
#include "model/checkpoint/save.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "model/random_model.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using masque::test::TempFolder;

/// Cases of tests/data/model and the family that they are saved as.
const std::map<std::string, std::string, std::less<>> kSaved{
    {"bert", "bert"},
    {"bert_gelu_new", "bert"},
    {"bert_google_names", "bert"},
    {"bert_headless", "bert"},
    {"bert_relu_untied", "bert"},
    {"roformer", "roformer"},
    {"roformer_v2", "roformer"},
    {"roformer_v2_untied", "roformer"},
    {"roformer_value", "roformer"},
    {"gpt2", "gpt2"},
    {"gpt2_base", "gpt2"},
    {"gpt2_layer_scale", "gpt2"},
    {"electra_discriminator", "electra"},
    {"electra_generator", "electra"},
    {"electra_generator_square", "bert"},
    {"gau_alpha", "gau_alpha"},
    {"gau_alpha_softmax", "gau_alpha"},
    {"gau_alpha_squared_relu", "gau_alpha"},
    {"tta", "tta"},
    {"tta_over_bert", "tta"},
};

LoadedModel<float> load(const masque::test::ModelCase& one) {
  LoadOptions options;
  if (one.name == "tta_over_bert") options.family = "tta";
  return load_model<float>(one.folder, options);
}

TEST_CASE("models of every family with a writer come back as they were") {
  std::size_t seen = 0;
  for (const auto& one : masque::test::model_cases()) {
    const auto wanted = kSaved.find(one.name);
    if (wanted == kSaved.end()) continue;
    CAPTURE(one.name);
    ++seen;
    const LoadedModel<float> model = load(one);
    CHECK(saved_design(model.design).family == wanted->second);
    TempFolder folder = TempFolder::in_memory();
    save_model(folder / "saved", model.design, model.weights);
    const LoadedModel<float> again = load_model<float>(folder / "saved");
    CHECK(again.design.family == wanted->second);
    CHECK(same_design(again.design, model.design));
    CHECK(again.unused.empty());
    CHECK(again.design.notes.empty());
    CHECK(again.design.missing_head.empty() == (model.design.head.kind != HeadKind::kNone));
    CHECK(test::same_weights(model.design, model.weights, again.weights));
  }
  CHECK(seen == kSaved.size());
}

TEST_CASE("random weights of every family with a writer come back as they were") {
  for (const auto& one : masque::test::model_cases()) {
    if (kSaved.count(one.name) == 0) continue;
    CAPTURE(one.name);
    const Design design = load(one).design;
    const ModelWeights<float> weights = test::random_weights<float>(design, 3);
    TempFolder folder = TempFolder::in_memory();
    save_model(folder / "saved", design, weights);
    const LoadedModel<float> again = load_model<float>(folder / "saved");
    CHECK(test::same_weights(design, weights, again.weights));
    CHECK_FALSE(test::same_weights(design, test::random_weights<float>(design, 4), again.weights));
  }
}

TEST_CASE("a design of no family is masque's, or refused") {
  Design design = test::tiny_design("\"type_vocab_size\": 2");
  CHECK(saved_design(design).family == "bert");
  design.normalizer = "log_n(base=64)";
  CHECK(saved_design(design).family == "masque");
  design.layers[1].window = 3;  // the first has none
  CHECK(saved_design(design).family == "masque");
  for (const auto& one : masque::test::model_cases()) {
    if (one.name == "xlnet") CHECK_THROWS_AS(saved_design(load(one).design), UsageError);
  }
}

TEST_CASE("config.json keeps what training says") {
  const Design design = test::tiny_design("\"type_vocab_size\": 2");
  const std::string text =
      saved_design(design,
                   {.initializer_range = 0.05, .hidden_dropout = 0.1, .attention_dropout = 0.2})
          .config;
  const store::ModelConfig config = store::ModelConfig::parse(text, "config.json");
  CHECK(config.number("initializer_range") == 0.05);
  CHECK(config.number("hidden_dropout_prob") == 0.1);
  CHECK(config.number("attention_probs_dropout_prob") == 0.2);
  CHECK(config.architectures() == std::vector<std::string>{"BertForMaskedLM"});
}

TEST_CASE("weights that a design needs and a model lacks are named") {
  const Design design = test::tiny_design("");
  ModelWeights<float> weights = test::random_weights<float>(design, 1);
  weights.layers[1].down.bias = {};
  TempFolder folder = TempFolder::in_memory();
  CHECK_THROWS_WITH_AS(save_model(folder / "saved", design, weights),
                       doctest::Contains("layers.1.feed_forward.down.bias"), UsageError);
}

TEST_CASE("designs are the same whatever they are called") {
  Design a = test::tiny_design("");
  Design b = a;
  b.family = "bert";
  b.notes = {"note"};
  b.missing_head = "no head";
  b.pad_token_id = 3;
  b.value_size = b.head_size;
  CHECK(same_design(a, b));
  b.position_offset = 1;
  CHECK_FALSE(same_design(a, b));
  b = a;
  b.variants.residual_scale = 2;
  CHECK_FALSE(same_design(a, b));
}

}  // namespace
}  // namespace masque::model
