// Transformer-XL's memory: no gradient goes to the states of earlier blocks, all others are exact.
#include <complex>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/save.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"
#include "train/complex_step.hpp"
#include "train/family_cases.hpp"
#include "train/network/network.hpp"
#include "train/train_case.hpp"

namespace masque::test {

using train::add_model;
using train::BlockMemory;
using train::Encoder;
using train::Example;
using train::ExampleChunk;
using train::Head;
using train::HeadTask;
using train::initialize_parameters;
using train::Network;
using train::ObjectiveOptions;
using train::Parameter;
using train::ParameterMap;
using train::Parameters;
using train::Tape;

namespace {

constexpr Index kTokens = 6;

/// A sequence with a loss in every block but the first; its masks where two streams want them.
Example long_example(const model::Design& design, const BlockMemory& memory) {
  Example e;
  e.ids = {2, 7, 4, 9, 3, 6};
  e.rows = {2, 3, 5};
  e.targets = {5, 11, 3};
  e.weights = {1, 0.5, 2};
  if (design.type_vocab_size > 1) e.segments = {0, 0, 0, 1, 1, 1};
  if (design.streams != model::Streams::kTwo) return e;
  const mask::Lengths lengths{kTokens, kTokens};
  const mask::Mask read = mask::parse_mask(memory.mask()).bind(lengths);
  e.mask = mask::parse_mask("causal").bind(lengths) & read;
  e.query_mask = mask::parse_mask("strict_causal").bind(lengths) & read;
  return e;
}

struct Trained {
  Parameters<double> parameters;
  double loss = 0;
};

/// Gradients of a case. `size`: where they stop; 0: nowhere.
Trained train_on(const NetworkCase& one, const Example& example, Index size) {
  Trained out;
  const model::ModelPlan plan = one.plan ? *one.plan : model::saved_design(one.design).plan;
  const model::HeadPlan* head =
      plan.heads.empty() ? nullptr : model::head_like(plan, one.design.head);
  const ParameterMap map = add_model(plan, head, "", ParameterMap(), out.parameters);
  initialize_parameters(one.design, map, {.seed = 3, .initializer_range = 0.4}, out.parameters);
  Network<double> network(one.design, map, out.parameters, kernel::Precision::kF64);
  if (size > 0) network.stop_at_blocks(size);
  network.prepare();
  out.loss = network.train({&example, 1}, 1, {}).loss;
  return out;
}

Complex complex_loss(const NetworkCase& one, const Example& example,
                     Parameters<Complex>& parameters) {
  const model::ModelPlan plan = one.plan ? *one.plan : model::saved_design(one.design).plan;
  Parameters<Complex> unused;
  const ParameterMap map =
      add_model(plan, plan.heads.empty() ? nullptr : model::head_like(plan, one.design.head), "",
                ParameterMap(), unused);
  Encoder<Complex> encoder(one.design, map, parameters, kernel::Precision::kF64);
  Head<Complex> head(one.design, map, parameters, kernel::Precision::kF64);
  encoder.prepare();
  head.prepare();
  ExampleChunk chunk;
  chunk.add(example);
  shift_wanted(one.design, chunk);
  Tape<Complex> tape;
  Matrix<Complex> last(std::ssize(chunk.wanted), one.design.hidden_size);
  encoder.forward(chunk, {}, tape, last.view());
  HeadTask<Complex> task{last.view(), chunk.targets, chunk.weights};
  return head.run(task, {}).loss;
}

/// Cases of two layers under a memory of blocks of two, where the design can have one.
std::vector<NetworkCase> memory_cases(const BlockMemory& memory) {
  std::vector<NetworkCase> cases;
  std::vector<NetworkCase> all = network_cases();
  for (NetworkCase& one : family_cases()) all.push_back(std::move(one));
  for (NetworkCase& one : all) {
    model::Design& d = one.design;
    const bool vocabulary =
        d.head.kind == model::HeadKind::kMasked || d.head.kind == model::HeadKind::kCausal;
    if (!vocabulary || d.layers.back().weights != 1 || !d.variants.masks.empty() ||
        d.variants.detector)
      continue;
    // ReZero's layers add nothing at the start; ALBERT's tensors do not name their layer.
    if (d.norm_placement == model::NormPlacement::kReZero || one.name.starts_with("albert"))
      continue;
    if (model::mask_support(d).masks != nn::MaskSupport::kAny) continue;
    d.max_position_embeddings = std::max(d.max_position_embeddings, kTokens);
    if (d.streams != model::Streams::kTwo) {
      const std::string own(model::default_mask_name(d.mask));
      const std::string mask = fmt::format("({}) & {}", own, memory.mask());
      if (usage_error_message([&] { model::set_mask(mask, d); })) continue;
    }
    if (usage_error_message([&] { train_on(one, long_example(d, memory), 2); })) continue;
    cases.push_back(std::move(one));
  }
  return cases;
}

double largest_difference(const Trained& a, const Trained& b, std::string_view part) {
  double most = 0;
  for (Index i = 0; i < a.parameters.count(); ++i) {
    if (a.parameters[i].name.find(part) == std::string::npos || !a.parameters[i].trained) continue;
    auto& left = const_cast<Parameters<double>&>(a.parameters);
    auto& right = const_cast<Parameters<double>&>(b.parameters);
    const MatrixView<double> one = left.gradient(i), other = right.gradient(i);
    if (one.data == nullptr || other.data == nullptr) continue;
    for (Index k = 0; k < a.parameters[i].size(); ++k)
      most = std::max(most, std::abs(one.data[k] - other.data[k]));
  }
  return most;
}

}  // namespace

TEST_CASE("with a memory the last layer learns as without the stop, by complex steps") {
  const BlockMemory memory{.block_size = 2, .memory = 3};
  const std::vector<NetworkCase> cases = memory_cases(memory);
  CHECK(cases.size() >= 40);
  Index two_streams = 0;
  for (const NetworkCase& one : cases) {
    CAPTURE(one.name);
    const Example example = long_example(one.design, memory);
    Trained stopped = train_on(one, example, memory.block_size);
    check_gradients(
        stopped.parameters,
        [&](Parameters<Complex>& moved) { return complex_loss(one, example, moved); },
        [](const Parameter& p) {
          return p.trained && p.name.find(".1.") != std::string::npos &&
                 p.name.find(".0.") == std::string::npos;
        });
    // What is below learns less: some of its gradient went through states of earlier blocks.
    const Trained everywhere = train_on(one, example, 0);
    CHECK(stopped.loss == everywhere.loss);
    CHECK(largest_difference(stopped, everywhere, ".0.") > 1e-6);
    two_streams += one.design.streams == model::Streams::kTwo ? 1 : 0;
  }
  CHECK(two_streams >= 2);
}

TEST_CASE("without a memory, and in one block, nothing is stopped") {
  for (const BlockMemory& memory : {BlockMemory{2, 0}, BlockMemory{kTokens, 3}}) {
    CAPTURE(memory.mask());
    for (const NetworkCase& one : memory_cases(memory)) {
      CAPTURE(one.name);
      const Example example = long_example(one.design, memory);
      const Trained stopped = train_on(one, example, memory.block_size);
      const Trained everywhere = train_on(one, example, 0);
      CHECK(largest_difference(stopped, everywhere, "") <= 1e-12);
    }
  }
}

TEST_CASE("tokens of earlier blocks learn nothing from a later one") {
  // One layer, rotary positions: of the embeddings of the first block nothing but keys and values
  // reach the loss.
  for (const model::NormPlacement placement :
       {model::NormPlacement::kPost, model::NormPlacement::kPre}) {
    NetworkCase one{"one layer", small_design(), {}};
    model::Design& d = one.design;
    d.num_hidden_layers = 1;
    d.layers.resize(1);
    d.norm_placement = placement;
    d.position = model::PositionType::kNone;
    d.variants.position = "rope";
    d.embedding_norm.reset();
    d.head.tied = false;
    model::set_mask("causal & block_memory(3,3)", d);
    Example example;
    example.ids = {2, 7, 4, 9, 3, 6};
    example.rows = {4};
    example.targets = {5};
    example.weights = {1};
    Trained stopped = train_on(one, example, 3);
    const Trained everywhere = train_on(one, example, 0);
    bool found = false;
    for (Index i = 0; i < stopped.parameters.count(); ++i) {
      if (stopped.parameters[i].rows != d.vocab_size || stopped.parameters[i].columns != 8 ||
          stopped.parameters[i].name.find("embedding") == std::string::npos)
        continue;
      found = true;
      auto& all = const_cast<Parameters<double>&>(everywhere.parameters);
      for (const TokenId earlier : {2, 7, 4}) {
        for (Index c = 0; c < 8; ++c) CHECK(stopped.parameters.gradient(i).at(earlier, c) == 0);
        CHECK(all.gradient(i).at(earlier, 0) != 0);
      }
      for (const TokenId own : {9, 3}) {
        for (Index c = 0; c < 8; ++c)
          CHECK(stopped.parameters.gradient(i).at(own, c) ==
                doctest::Approx(all.gradient(i).at(own, c)).epsilon(1e-12));
      }
    }
    CHECK(found);
    // The layer's own weights learn from what they make of the memory.
    for (Index i = 0; i < stopped.parameters.count(); ++i) {
      const std::string& name = stopped.parameters[i].name;
      if (name.find(".0.") == std::string::npos) continue;
      CAPTURE(name);
      CHECK(largest_difference(stopped, everywhere, name) <= 1e-12);
    }
  }
}

TEST_CASE("a permutation within blocks reads all of the blocks before") {
  ObjectiveOptions options = objective_options();
  options.memory = BlockMemory{.block_size = 8, .memory = 5};
  const auto objective = make_objective("plm", options);
  const Sequence sequence(1, 30);
  const Example example = objective->example(sequence.item(), 0);
  const Example plain = make_objective("plm")->example(sequence.item(), 0);
  REQUIRE(example.query_mask);
  for (Index i = 0; i < 30; ++i) {
    for (Index j = 0; j < 30; ++j) {
      const bool same_block = i / 8 == j / 8;
      const bool read =
          same_block ? plain.query_mask->allows(i, j) : j < i / 8 * 8 && j >= i / 8 * 8 - 5;
      CHECK(example.query_mask->allows(i, j) == read);
      CHECK(example.mask->allows(i, j) == (read || i == j));
    }
  }
}

TEST_CASE("designs that cannot have a memory are refused") {
  for (const NetworkCase& one : network_cases()) {
    if (one.design.layer_kind == model::LayerKind::kTransformer &&
        one.design.variants.mixer == nullptr && !model::joins_heads(one.design))
      continue;
    CAPTURE(one.name);
    Parameters<double> parameters;
    const model::ModelPlan plan = one.plan ? *one.plan : model::saved_design(one.design).plan;
    const ParameterMap map =
        add_model(plan, plan.heads.empty() ? nullptr : model::head_like(plan, one.design.head), "",
                  ParameterMap(), parameters);
    Encoder<double> encoder(one.design, map, parameters, kernel::Precision::kF64);
    CHECK_THROWS_AS(encoder.stop_at_blocks(2), UsageError);
  }
}

}  // namespace masque::test
