// One update and what it changes: against the optimizer's formula, a second engine, and itself.
#include "train/run/depth_probe.hpp"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "model/model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::train {
namespace {

using test::TempFolder;

constexpr Index kSequences = 6;

/// A run on a text of a few lines.
std::unique_ptr<TrainingRun> make_run(const TempFolder& folder, const std::string& placement,
                                      const std::string& objective = "clm",
                                      Optimizer optimizer = Optimizer::kAdamW,
                                      double initializer_range = 0.02) {
  std::string text;
  for (const char* line : {"the cat sat on the mat", "a dog ran", "the dog sat on a cat",
                           "on the mat a cat ran", "a mat sat", "the cat ran on the dog"})
    text += std::string(line) + "\n";
  test::write_file(folder / "text", text);
  test::write_file(folder / "vocab.txt",
                   "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\na\ncat\ndog\nmat\nsat\nran\non\n");
  RunOptions options;
  options.objective = objective;
  options.design.num_hidden_layers = 3;
  options.design.hidden_size = 16;
  options.design.intermediate_size = 24;
  options.design.num_attention_heads = 2;
  options.design.position = objective == "plm" ? "rope" : "learned";
  if (objective == "two-tower") options.design.num_hidden_layers = 4;
  options.design.norm_placement = placement;
  options.initializer_range = initializer_range;
  options.trainer.batch_size = kSequences;
  options.trainer.optimizer = optimizer;
  options.trainer.clip = 0;
  options.trainer.weight_decay = 0;
  options.trainer.schedule.learning_rate = 0.01;
  options.trainer.schedule.decay = Decay::kConstant;
  const text::Tokenizer tokenizer = text::Tokenizer::open(folder / "vocab.txt");
  CorpusOptions reading;
  reading.length = 12;
  return std::make_unique<TrainingRun>(std::move(options), tokenizer,
                                       read_corpus(folder / "text", tokenizer, reading));
}

double squares(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

/// Sums of squares of hidden states, by layer.
class StateSums : public model::Observer {
 public:
  void hidden_states(Index, Index state, MatrixView<const float> rows) override {
    const auto at = static_cast<std::size_t>(state);
    if (at >= sums.size()) sums.resize(at + 1, 0.0), numbers.resize(at + 1, 0.0);
    for (Index i = 0; i < rows.rows; ++i) sums[at] += squares(rows.row_span(i));
    numbers[at] += static_cast<double>(rows.rows * rows.columns);
  }
  std::vector<double> sums, numbers;
};

}  // namespace

TEST_CASE("an update of the depth probe is the optimizer's, and leaves the values as they were") {
  for (const char* placement : {"post", "pre", "parallel", "deepnorm"}) {
    for (const FirstUpdate update : {FirstUpdate::kSgd, FirstUpdate::kAdam, FirstUpdate::kLamb}) {
      CAPTURE(placement);
      CAPTURE(name_in(first_updates(), update));
      const TempFolder folder;
      const auto run = make_run(folder, placement);
      const std::vector<float> before(run->parameters().values().begin(),
                                      run->parameters().values().end());
      const DepthReport report = probe_depth(*run, update, 0.01, kSequences);
      const std::vector<float> after(run->parameters().values().begin(),
                                     run->parameters().values().end());
      CHECK(before == after);
      CHECK(report.rows > 20);
      CHECK(report.loss_after < report.loss);
      CHECK(report.change > 0);
      REQUIRE(report.layers.size() == 3);
      double gradients = 0;
      for (const DepthLayer& layer : report.layers) {
        CHECK(layer.change > 0);
        gradients += layer.gradient * layer.gradient;
        if (update == FirstUpdate::kSgd)
          CHECK(layer.update == doctest::Approx(0.01 * layer.gradient).epsilon(1e-3));
        // η for each number but those without a gradient.
        if (update == FirstUpdate::kAdam) {
          const double most = 0.01 * std::sqrt(16.0 * (4 * 17 + 2 * 24 + 6) + 24);
          CHECK(layer.update < most + 1e-6);
          CHECK(layer.update > 0.9 * most);
        }
      }
      CHECK(std::sqrt(gradients) < report.gradient);
    }
  }
}

TEST_CASE("the first step of a training moves the function as the depth probe says") {
  for (const Optimizer optimizer : {Optimizer::kAdamW, Optimizer::kLamb}) {
    const TempFolder folder;
    const auto run = make_run(folder, "post", "clm", optimizer);
    const FirstUpdate update =
        optimizer == Optimizer::kLamb ? FirstUpdate::kLamb : FirstUpdate::kAdam;
    const DepthReport report = probe_depth(*run, update, 0.01, kSequences);
    std::vector<StepChange> steps;
    follow_change(*run, kSequences, [&](const StepChange& step) { steps.push_back(step); });
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].step == 1);
    // The batch is the whole corpus, in another order.
    CHECK(steps[0].loss == doctest::Approx(report.loss).epsilon(1e-5));
    CHECK(steps[0].gradient == doctest::Approx(report.gradient).epsilon(1e-4));
    CHECK(steps[0].change == doctest::Approx(report.change).epsilon(0.02));
  }
}

TEST_CASE("sizes of states are those of inference, branches and norm inputs fit together") {
  for (const std::string placement : {"post", "pre", "parallel", "deepnorm", "normformer"}) {
    CAPTURE(placement);
    const TempFolder folder;
    const auto run = make_run(folder, placement);
    const DepthReport report = probe_depth(*run, FirstUpdate::kSgd, 0.01, kSequences);
    run->save_model(folder / "model", run->design().max_position_embeddings);
    const auto model = model::open_model(folder / "model");
    StateSums states;
    model::Request request;
    request.hidden_states = true;
    for (const Example& example : run->first_examples(kSequences)) {
      model::Batch batch;
      batch.add(example.ids, {});
      model->run(batch, request, &states);
    }
    REQUIRE(states.sums.size() == 4);
    // Of the last layer only rows with a loss are made.
    for (std::size_t l = 0; l + 1 < report.layers.size(); ++l) {
      CHECK(report.layers[l].state ==
            doctest::Approx(std::sqrt(states.sums[l + 1] / states.numbers[l + 1])).epsilon(1e-5));
    }
    const bool post = placement == "post" || placement == "deepnorm";
    const double alpha = run->design().variants.residual_scale;
    for (std::size_t l = 1; l + 1 < report.layers.size(); ++l) {
      const DepthLayer& layer = report.layers[l];
      const double before = report.layers[l - 1].state;
      if (post) {
        // The norm reads the sum of residual and branch: between the difference of their sizes and
        // the sum.
        CHECK(layer.attention_norm_input <= alpha * before + layer.attention_branch + 1e-6);
        CHECK(layer.attention_norm_input >= alpha * before - layer.attention_branch - 1e-6);
      } else {
        CHECK(layer.attention_norm_input == doctest::Approx(before).epsilon(1e-5));
      }
      if (placement == "parallel")
        CHECK(layer.feed_forward_norm_input == layer.attention_norm_input);
      CHECK(layer.attention_branch > 0);
      CHECK(layer.feed_forward_branch > 0);
    }
  }
}

TEST_CASE("Admin starts from the sizes of the parts in front") {
  for (const char* objective : {"clm", "tta", "plm"}) {
    CAPTURE(objective);
    const TempFolder folder;
    // With ω = 1 it is the post-norm model of the same seed.
    const auto make = [&](const char* placement) {
      return make_run(folder, placement, objective, Optimizer::kAdamW, 0.3);
    };
    const DepthReport report = probe_depth(*make("post"), FirstUpdate::kSgd, 0.01, kSequences);
    const auto run = make("admin");
    double sum = 1;
    const auto check = [&](model::Role role, Index layer, double branch) {
      for (const float weight : run->parameters().value(run->map().weight(role, layer)).row_span(0))
        CHECK(static_cast<double>(weight) == doctest::Approx(std::sqrt(sum)).epsilon(1e-6));
      sum += branch * branch;
    };
    for (std::size_t l = 0; l < report.layers.size(); ++l) {
      const auto layer = static_cast<Index>(l);
      check(model::Role::kAttentionResidual, layer, report.layers[l].attention_branch);
      check(model::Role::kFeedForwardResidual, layer, report.layers[l].feed_forward_branch);
    }
    CHECK(sum > 2);
    // What its own parts give does not include the weighted states.
    const DepthReport own = probe_depth(*run, FirstUpdate::kSgd, 0.01, kSequences);
    CHECK(own.layers[0].attention_branch ==
          doctest::Approx(report.layers[0].attention_branch).epsilon(1e-5));
  }
  const TempFolder folder;
  CHECK(test::message_of<UsageError>([&] {
          make_run(folder, "admin", "electra");
        }).starts_with("norm_placement admin with objective electra: "));
  CHECK(test::message_of<UsageError>([&] { make_run(folder, "admin", "two-tower"); }) ==
        "norm_placement admin does not support two towers");
}

TEST_CASE("the depth probe reads T-TA, masked and permuted models, and refuses two towers") {
  for (const char* objective : {"tta", "mlm", "plm", "two-tower"}) {
    CAPTURE(objective);
    const TempFolder folder;
    const auto run = make_run(folder, "post", objective);
    if (objective == std::string("two-tower")) {
      CHECK(test::message_of<UsageError>([&] { probe_depth(*run, FirstUpdate::kAdam, 1, 2); }) ==
            "the model has two towers, expected one stack of layers");
      continue;
    }
    const DepthReport report = probe_depth(*run, FirstUpdate::kAdam, 0.001, kSequences);
    CHECK(report.layers.size() == 3);
    for (const DepthLayer& layer : report.layers) {
      CHECK(layer.state > 0.5);
      CHECK(layer.change > 0);
    }
  }
}

}  // namespace masque::train
