// Encoder–decoders in training: what no golden file of steps shows (golden_test.cpp has those).
#include <complex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/starting_model.hpp"
#include "text/tokenizer.hpp"
#include "train/complex_step.hpp"
#include "train/data/objective.hpp"
#include "train/network/network.hpp"
#include "train/run/starting_design.hpp"

namespace masque::train {

using test::check_gradients;
using test::Complex;

namespace {

const std::string kFolder = MASQUE_TEST_DATA "/encoder_decoder/";
constexpr const char* kModels[] = {"t5", "t5_untied", "mt5", "bart", "bart_scaled", "mbart"};

/// A checkpoint in double.
struct Started {
  model::Design design;
  Parameters<double> parameters;
  ParameterMap map;
  std::optional<EncoderPart> source;

  explicit Started(const std::string& name) {
    const model::StartingModel start(kFolder + name, model::StartingPart::kDecoder);
    design = start.design();
    Parameters<float> single;
    map = add(start, single);
    CHECK(copy_weights(start.weights(), map, single).empty());
    CHECK(copy_weights(start.encoder()->weights(), source->map, single).empty());
    add(start, parameters);
    std::ranges::copy(single.values(), parameters.values().begin());
  }
  template <class T>
  ParameterMap add(const model::StartingModel& start, Parameters<T>& to) {
    return add_starting_model(start, start.saved_design(design).plan, source, to);
  }
  Network<double> network() {
    return {design, map, parameters, kernel::Precision::kF64, {}, &*source};
  }
  std::vector<double> gradients() {
    const auto all = parameters.gradients();
    return {all.begin(), all.end()};
  }
};

std::vector<Example> examples() {
  std::vector<Example> all(3);
  all[0].source = {7, 8, 9, 10, 5, 6};
  all[0].ids = {2, 5, 9, 11};
  all[1].source = {12};
  all[1].ids = {2, 13, 7};
  all[2].source = {6, 6, 11, 8};
  all[2].ids = {2, 9};
  for (Example& e : all) {
    // Of the last layer only some rows are made.
    for (Index i = 1; i < e.size(); ++i) {
      e.rows.push_back(i);
      e.targets.push_back(4 + static_cast<TokenId>(i));
    }
  }
  return all;
}

DropoutOptions some_dropout() {
  DropoutOptions dropout;
  dropout.hidden_dropout = 0.3;
  dropout.seed = 4;
  dropout.step = 2;
  return dropout;
}

/// Σ loss of the examples, by complex numbers, with `dropout` of states.
Complex complex_loss(const Started& model, Parameters<Complex>& parameters,
                     DropoutOptions dropout) {
  ExampleChunk chunk;
  for (const Example& example : examples()) chunk.add(example);
  const ExampleChunk sources = chunk.sources();
  Encoder<Complex> encoder(model.source->design, model.source->map, parameters,
                           kernel::Precision::kF64);
  Encoder<Complex> decoder(model.design, model.map, parameters, kernel::Precision::kF64);
  Head<Complex> head(model.design, model.map, parameters, kernel::Precision::kF64);
  encoder.prepare();
  decoder.prepare();
  head.prepare();
  DropoutOptions of_source = dropout;
  of_source.seed = ~dropout.seed;
  Tape<Complex> source_tape, tape;
  Matrix<Complex> states(sources.rows(), model.design.hidden_size);
  encoder.forward(sources, of_source, source_tape, states.view());
  tape.source = {states.view(), chunk.source_begins, {}};
  Matrix<Complex> last(std::ssize(chunk.wanted), model.design.hidden_size);
  decoder.forward(chunk, dropout, tape, last.view());
  HeadTask<Complex> task{last.view(), chunk.targets, chunk.weights};
  task.offsets = chunk.offsets;
  return head.run(task, {}).loss;
}

}  // namespace

TEST_CASE("gradients of encoder–decoders are those of complex steps, with dropout of states") {
  for (const char* name : kModels) {
    for (const double share : {0.0, 0.3}) {
      CAPTURE(name);
      CAPTURE(share);
      Started model(name);
      DropoutOptions dropout = some_dropout();
      dropout.hidden_dropout = share;
      Network<double> network = model.network();
      network.prepare();
      const double loss = network.train(examples(), 1, dropout).loss;
      check_gradients(
          model.parameters,
          [&](Parameters<Complex>& moved) {
            const Complex found = complex_loss(model, moved, dropout);
            CHECK(found.real() == doctest::Approx(loss).epsilon(1e-12));
            return found;
          },
          [](const Parameter& p) { return p.trained; });
    }
  }
}

TEST_CASE("chunks and recomputing change nothing of an encoder–decoder's step") {
  for (const char* name : {"t5", "bart"}) {
    CAPTURE(name);
    DropoutOptions dropout = some_dropout();
    dropout.attention_dropout = 0.2;
    Started whole(name), parts(name), again(name);
    for (Started* one : {&whole, &parts, &again}) {
      Network<double> network = one->network();
      if (one == &parts) network.chunk_rows = 1;
      network.set_recompute(one == &again ? Recompute::kOn : Recompute::kOff);
      network.prepare();
      network.train(examples(), 1, dropout);
    }
    const auto of_whole = whole.gradients();
    CHECK(again.gradients() == of_whole);
    const auto of_parts = parts.gradients();
    for (std::size_t i = 0; i < of_whole.size(); ++i)
      CHECK(std::abs(of_parts[i] - of_whole[i]) <= 1e-12 * (1 + std::abs(of_whole[i])));
  }
}

TEST_CASE("a frozen part leaves the gradients of the other one as they are") {
  for (const char* name : {"t5", "bart"}) {
    CAPTURE(name);
    Started whole(name);
    Network<double> network = whole.network();
    network.prepare();
    network.train(examples(), 1, {});
    for (const bool encoder : {false, true}) {
      CAPTURE(encoder);
      Started frozen(name);
      // What both have is trained with either.
      std::vector<bool> trains(static_cast<std::size_t>(frozen.parameters.count()), false);
      (encoder ? frozen.source->map : frozen.map)
          .for_each([&](model::Role, bool, Index, Index, Index parameter) {
            trains[static_cast<std::size_t>(parameter)] = true;
          });
      for (Index i = 0; i < frozen.parameters.count(); ++i) {
        const bool kept = trains[static_cast<std::size_t>(i)] && frozen.parameters[i].trained;
        frozen.parameters.set_training(i, kept, 1);
      }
      Network<double> own = frozen.network();
      own.prepare();
      own.train(examples(), 1, {});
      for (Index i = 0; i < frozen.parameters.count(); ++i) {
        if (!frozen.parameters[i].trained) continue;
        CAPTURE(frozen.parameters[i].name);
        const MatrixView<double> found = frozen.parameters.gradient(i);
        const MatrixView<double> expected = whole.parameters.gradient(i);
        double difference = 0;
        for (Index k = 0; k < frozen.parameters[i].size(); ++k)
          difference = std::max(difference, std::abs(found.data[k] - expected.data[k]));
        CHECK(difference <= 1e-12);
      }
    }
  }
}

TEST_CASE("an encoder's gradients are complete last") {
  Started model("bart");
  const std::vector<Index> last = model.network().last_layers();
  model.source->map.for_each([&](model::Role, bool, Index, Index, Index parameter) {
    CHECK(last[static_cast<std::size_t>(parameter)] == -1);
    CHECK(model.parameters[parameter].depth == 0);
  });
}

TEST_CASE("what no encoder–decoder is") {
  const auto opened = [](const std::string& path, model::StartingPart part) {
    return input_error_message([&] { model::StartingModel(path, part); }).value_or("");
  };
  CHECK(opened(MASQUE_TEST_DATA "/model/gpt2", model::StartingPart::kDecoder)
            .find("family gpt2 has no decoder that reads an encoder") != std::string::npos);
  CHECK(opened(kFolder + "bart", model::StartingPart::kModel)
            .find("the encoder of family bart is no model of its own") != std::string::npos);
}

}  // namespace masque::train
