// What is trained, at which rates, and that the rest costs and changes nothing.
#include "train/run/trained_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "electra_case.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/checkpoint/save.hpp"
#include "support/message.hpp"
#include "train/loss/mae_loss.hpp"
#include "train/network_cases.hpp"
#include "train/run/trainer.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

using Gradients = std::map<std::string, std::vector<double>>;

template <class T>
Gradients gradients_by_name(Parameters<T>& parameters) {
  Gradients out;
  for (Index i = 0; i < parameters.count(); ++i) {
    const MatrixView<T> g = parameters.gradient(i);
    CHECK((g.data != nullptr) == parameters[i].trained);
    out[parameters[i].name] = {g.data, g.data + g.rows * g.columns};
  }
  return out;
}

/// Those of `some` are those of `all`.
void check_some(const Gradients& some, const Gradients& all) {
  for (const auto& [name, found] : some) {
    CAPTURE(name);
    const std::vector<double>& expected = all.at(name);
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK(std::abs(found[k] - expected[k]) <= 1e-12 * std::max(1.0, std::abs(expected[k])));
  }
}

/// A network whose numbers are all random.
struct RandomNetwork {
  explicit RandomNetwork(const model::Design& requested) : design(requested) {
    const model::ModelPlan plan = model::saved_design(design).plan;
    map = add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    for (Index i = 0; i < parameters.count(); ++i) {
      const auto size = static_cast<std::size_t>(parameters[i].size());
      RandomStream(5, parameters[i].name).normal(0, size, parameters.value(i).data);
      for (std::size_t k = 0; k < size; ++k) parameters.value(i).data[k] *= 0.3;
    }
  }

  Gradients gradients() {
    Network<double> network(design, map, parameters, kernel::Precision::kF64);
    network.prepare();
    parameters.clear_gradients();
    network.train(small_examples(design), 1, {});
    return gradients_by_name(parameters);
  }

  model::Design design;
  Parameters<double> parameters;
  ParameterMap map;
};

/// Trains every tensor for which `test` says so, of those that are trained now.
template <class T, class Test>
void train_some(Parameters<T>& parameters, const Test& test) {
  for (Index i = 0; i < parameters.count(); ++i)
    parameters.set_training(i, parameters[i].trained && test(i), 1);
}

/// Numbers with their room in the memory.
Index padded(Index size) { return (size + 15) / 16 * 16; }

DesignRecipe frozen_recipe() {
  DesignRecipe recipe;
  recipe.vocab_size = kVocabulary;
  recipe.num_hidden_layers = 3;
  recipe.hidden_size = 16;
  recipe.num_attention_heads = 2;
  recipe.max_position_embeddings = 20;
  return recipe;
}

/// A masked language model with its loss, and the options that were chosen.
struct ChosenModel {
  explicit ChosenModel(const TrainedOptions& options = {}) {
    ObjectiveOptions requested;
    requested.tokens = small_tokens();
    requested.mlm.selection.rate = 0.3;
    design = design_of(frozen_recipe());
    design.type_vocab_size = 2;
    objective = find_objective("mlm").make(requested);
    objective->adapt(design);
    const model::ModelPlan plan = model::saved_design(design).plan;
    map = add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    initialize_parameters(design, map, {.seed = 3, .initializer_range = 0.2}, parameters);
    const TrainedNetwork network{model::count_layers(design), &map};
    choose_trained(options, std::span(&network, 1), parameters);
    net = std::make_unique<Network<float>>(design, map, parameters, kernel::Precision::kF32);
    loss = std::make_unique<ObjectiveLoss>(*net, *objective);
  }

  std::vector<std::string> trained() const {
    std::vector<std::string> names;
    for (Index i = 0; i < parameters.count(); ++i) {
      if (parameters[i].trained) names.push_back(parameters[i].name);
    }
    return names;
  }
  double rate_of(std::string_view name) const {
    for (Index i = 0; i < parameters.count(); ++i) {
      if (parameters[i].name == name) return parameters[i].rate;
    }
    FAIL("no tensor ", std::string(name));
    return 0;
  }

  model::Design design;
  Parameters<float> parameters;
  ParameterMap map;
  std::unique_ptr<const Objective> objective;
  std::unique_ptr<Network<float>> net;
  std::unique_ptr<StepLoss> loss;
};

}  // namespace

TEST_CASE("gradients of a part of a network are those of the whole, for every variant") {
  for (const NetworkCase& one : network_cases()) {
    CAPTURE(one.name);
    RandomNetwork whole(one.design);
    const Gradients all = whole.gradients();
    const Index count = whole.parameters.count();
    for (int draw = 0; draw < 4; ++draw) {
      CAPTURE(draw);
      RandomNetwork some(one.design);
      std::vector<double> numbers(static_cast<std::size_t>(count));
      RandomStream(static_cast<std::uint64_t>(draw), "frozen")
          .normal(0, numbers.size(), numbers.data());
      train_some(some.parameters,
                 [&](Index i) { return numbers[static_cast<std::size_t>(i)] > 0.5 * draw; });
      check_some(some.gradients(), all);
    }
    // One alone: the way back ends as soon as it can.
    for (Index k = 0; k < count; ++k) {
      RandomNetwork some(one.design);
      train_some(some.parameters, [&](Index i) { return i == k; });
      check_some(some.gradients(), all);
    }
  }
}

TEST_CASE("gradients of a part of ELECTRA's networks are those of both") {
  const Corpus corpus = small_corpus();
  for (const Setting& setting :
       {Setting{}, Setting{.variant = "all-tokens-mlm"}, Setting{.adversarial = true}}) {
    CAPTURE(setting.variant);
    const auto gradients = [&](Pair<double>& pair) {
      pair.loss->begin(1);
      pair.loss->prepare();
      pair.parameters.clear_gradients();
      pair.loss->add_gradients(items_of(corpus), {});
      return gradients_by_name(pair.parameters);
    };
    Pair<double> whole(setting);
    const Gradients all = gradients(whole);
    for (const bool generator : {false, true}) {
      Pair<double> some(setting);
      train_some(some.parameters, [&](Index i) {
        return some.parameters[i].name.starts_with("generator.") == generator;
      });
      check_some(gradients(some), all);
    }
    Pair<double> biases(setting);
    train_some(biases.parameters,
               [&](Index i) { return biases.parameters[i].name.ends_with(".bias"); });
    check_some(gradients(biases), all);
  }
}

TEST_CASE("gradients of a part of MAE's networks are those of both") {
  const Corpus corpus = small_corpus();
  struct Coders {
    Coders() {
      ObjectiveOptions requested;
      requested.tokens = small_tokens();
      requested.mae.ratio = 0.6;
      model.encoder = design_of(frozen_recipe());
      adapt_mae(requested, model.encoder);
      model.decoder =
          decoder_design(decoder_recipe(frozen_recipe(), 0.5, 2), requested, model.encoder);
      add_mae(model, parameters);
      const StartOptions start{.seed = 3, .initializer_range = 0.3};
      initialize_parameters(model.decoder, model.decoder_map, start, parameters);
      initialize_parameters(model.encoder, model.encoder_map, start, parameters);
      loss =
          std::make_unique<MaeLoss<double>>(requested, model, parameters, kernel::Precision::kF64);
    }
    Gradients gradients(const Corpus& corpus) {
      loss->prepare();
      parameters.clear_gradients();
      loss->add_gradients(items_of(corpus), {});
      return gradients_by_name(parameters);
    }
    MaeModel model;
    Parameters<double> parameters;
    std::unique_ptr<MaeLoss<double>> loss;
  };
  Coders whole;
  const Gradients all = whole.gradients(corpus);
  for (const std::string_view text : {"decoder.", "decoder.cls", "bert.encoder.layer.2"}) {
    CAPTURE(text);
    for (const bool without : {false, true}) {
      Coders some;
      Index trained = 0;
      train_some(some.parameters, [&](Index i) {
        const bool is_trained = some.parameters[i].name.starts_with(text) != without;
        trained += is_trained ? 1 : 0;
        return is_trained;
      });
      if (trained > 0) check_some(some.gradients(corpus), all);
    }
  }
}

TEST_CASE("words and patterns say what is trained") {
  const auto chosen = [](TrainedOptions options) { return ChosenModel(options).trained(); };
  const std::vector<std::string> everything = chosen({});
  const auto which = [&](const auto& test) {
    std::vector<std::string> out;
    std::ranges::copy_if(everything, std::back_inserter(out), test);
    return out;
  };
  const auto has = [](std::string_view part) {
    return [part](const std::string& name) { return name.find(part) != std::string::npos; };
  };
  CHECK(chosen({.train = {"*"}}) == everything);
  CHECK(chosen({.train = {"embeddings"}}) == which(has("embeddings.")));
  CHECK(chosen({.train = {"position"}}) == which(has("position_embeddings")));
  CHECK(chosen({.train = {"head"}}) == which(has("cls.")));
  CHECK(chosen({.train = {"bias"}}) == which(has("bias")));
  CHECK(chosen({.train = {"norm"}}) == which(has("LayerNorm")));
  CHECK(chosen({.train = {"attention"}}) == which([](const std::string& name) {
          return name.find("attention") != std::string::npos &&
                 name.find("LayerNorm") == std::string::npos;
        }));
  CHECK(chosen({.train = {"feed_forward"}}) == which([](const std::string& name) {
          return name.find("dense") != std::string::npos &&
                 name.find("encoder") != std::string::npos &&
                 name.find("attention") == std::string::npos;
        }));
  CHECK(chosen({.train = {"layer:1"}}) == which(has("layer.1.")));
  CHECK(chosen({.train = {"layer:0-1"}, .freeze = {"layer:0"}}) == which(has("layer.1.")));
  CHECK(chosen({.train = {"*.layer.2.*"}}) == which(has("layer.2.")));
  CHECK(chosen({.freeze = {"bert.*"}}) == which(has("cls.")));
  CHECK(chosen({.train = {"layer:2", "head"}}).size() ==
        which(has("layer.2.")).size() + which(has("cls.")).size());

  const auto message = [&](TrainedOptions options) {
    return message_of<UsageError>([&] { chosen(options); });
  };
  CHECK(message({.freeze = {"embedding"}}) ==
        "freeze: 'embedding' matches no tensor, expected tensor names with * for any text, "
        "or one of embeddings, position, attention, feed_forward, norm, bias, head, layer:N, "
        "layer:A-B");
  CHECK(message({.train = {"layer:3"}}) ==
        "train: found 'layer:3', expected layer:N or layer:A-B, from 0 to 2");
  for (const char* wrong : {"layer:", "layer:-1", "layer:1-0", "layer:1-", "layer:x", "layer:1-9"})
    CHECK(message({.freeze = {wrong}}).starts_with("freeze: found 'layer:"));
  CHECK(message({.freeze = {"*"}}) == "train and freeze leave nothing to train");
  for (const char* wrong : {"norm", "norm=", "norm=0", "norm=-1", "norm=nan", "norm=x"})
    CHECK(message({.rate_of = {wrong}}).starts_with("rate_of: found '"));
  CHECK(message({.rate_of = {"=1"}}).starts_with("rate_of: '' matches no tensor"));
  CHECK(message({.freeze = {"head"}, .rate_of = {"head=2"}}) ==
        "rate_of head=2 has no effect: none of these tensors is trained; remove it");
  CHECK(message({.layer_decay = 0}).starts_with("layer_decay: found 0"));
}

TEST_CASE("rates: factors by pattern, and layer-wise decay") {
  const ChosenModel plain({.rate_of = {"norm=0.5", "embeddings=0.1"}});
  CHECK(plain.rate_of("bert.encoder.layer.0.output.LayerNorm.weight") == 0.5);
  CHECK(plain.rate_of("bert.embeddings.LayerNorm.weight") == 0.1);
  CHECK(plain.rate_of("bert.encoder.layer.0.output.dense.weight") == 1);
  const ChosenModel decays({.rate_of = {"layer:0=2"}, .layer_decay = 0.5});
  CHECK(decays.rate_of("cls.predictions.transform.dense.weight") == 1);
  CHECK(decays.rate_of("bert.encoder.layer.2.output.dense.weight") == 0.5);
  CHECK(decays.rate_of("bert.encoder.layer.1.output.dense.weight") == 0.25);
  CHECK(decays.rate_of("bert.encoder.layer.0.output.dense.weight") == 0.25);  // 2 · 0.5³
  CHECK(decays.rate_of("bert.embeddings.word_embeddings.weight") == 0.0625);
}

TEST_CASE("what is not trained keeps its bits, and costs no moments") {
  const Corpus corpus = small_corpus();
  ChosenModel whole;
  ChosenModel some({.train = {"layer:2", "head"}, .freeze = {"*.bias"}});
  TrainerOptions options;
  options.schedule.steps = 5;
  options.batch_size = 4;
  options.hidden_dropout = 0.1;
  const std::vector<float> start(some.parameters.values().begin(), some.parameters.values().end());
  Trainer trainer(*some.loss, some.parameters, corpus, options);
  Index expected = 0;
  for (Index i = 0; i < some.parameters.count(); ++i)
    expected += some.parameters[i].trained ? padded(some.parameters[i].size()) : 0;
  CHECK(trainer.state().first.columns() == expected);
  CHECK(trainer.state().second.columns() == expected);
  CHECK(static_cast<Index>(some.parameters.gradients().size()) == expected);
  CHECK(expected < static_cast<Index>(whole.parameters.gradients().size()) / 2);
  CHECK(static_cast<Index>(whole.parameters.gradients().size()) ==
        static_cast<Index>(whole.parameters.values().size()));
  for (int step = 0; step < 5; ++step) trainer.step();
  for (Index i = 0; i < some.parameters.count(); ++i) {
    const Parameter& p = some.parameters[i];
    CAPTURE(p.name);
    const auto from = start.begin() + p.offset;
    CHECK(std::equal(from, from + p.size(), some.parameters.value(i).data) == !p.trained);
  }
  CHECK(count_trained(some.parameters) < count_trained(whole.parameters) / 2);
}

TEST_CASE("an update is AdamW's, with each tensor's rate, clipped by what is trained alone") {
  const Corpus corpus = small_corpus();
  TrainerOptions options;
  options.schedule.learning_rate = 0.01;
  options.schedule.steps = 3;
  options.schedule.decay = Decay::kConstant;
  options.batch_size = 4;
  options.weight_decay = 0.1;
  options.clip = 0.5;
  ChosenModel model(
      {.train = {"embeddings", "layer:1-2"}, .rate_of = {"norm=3"}, .layer_decay = 0.5});
  Parameters<float>& parameters = model.parameters;
  std::vector<double> values(parameters.values().begin(), parameters.values().end());
  std::vector<double> first(values.size()), second(values.size());
  Trainer trainer(*model.loss, parameters, corpus, options);
  for (int step = 1; step <= 3; ++step) {
    const StepReport report = trainer.step();
    double squares = 0;
    for (const float g : parameters.gradients()) squares += double{g} * double{g};
    CHECK(report.gradient_norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-6));
    REQUIRE(report.gradient_norm > options.clip);
    const double scale = options.clip / (report.gradient_norm + 1e-6);
    for (Index i = 0; i < parameters.count(); ++i) {
      const Parameter& p = parameters[i];
      CAPTURE(p.name);
      if (!p.trained) continue;
      CHECK(p.rate == doctest::Approx(model.rate_of(p.name)));
      const double rate = 0.01 * p.rate;
      const MatrixView<float> gradient = parameters.gradient(i);
      for (Index k = 0; k < p.size(); ++k) {
        const auto at = static_cast<std::size_t>(p.offset + k);
        const double g = scale * static_cast<double>(gradient.data[k]);
        first[at] = 0.9 * first[at] + 0.1 * g;
        second[at] = 0.999 * second[at] + 0.001 * g * g;
        const double mean = first[at] / (1 - std::pow(0.9, step));
        const double square = second[at] / (1 - std::pow(0.999, step));
        values[at] *= 1 - rate * (p.decays ? options.weight_decay : 0);
        values[at] -= rate * mean / (std::sqrt(square) + 1e-8);
        const auto found = static_cast<double>(parameters.value(i).data[k]);
        CHECK(std::abs(found - values[at]) <= 1e-5 * std::max(1.0, std::abs(values[at])));
      }
    }
  }
}

}  // namespace masque::test
