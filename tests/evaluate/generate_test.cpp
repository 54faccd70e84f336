// Generation against transformers (scripts/goldens/generate.py), and draws against the softmax.
#include "evaluate/write/generate.hpp"

#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "evaluate/write/generation_config.hpp"
#include "fake_model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

using test::message_of;

using model::HeadKind;

const std::string kData = MASQUE_TEST_DATA;

JsonValue golden() {
  const std::string path = kData + "/evaluate/generate.json";
  return parse_json_file(read_text(path, 1 << 20), path);
}

double number(const JsonValue& value, std::string_view name) { return *value.find(name)->number(); }

std::vector<TokenId> ids_of(const JsonValue& list) {
  std::vector<TokenId> out;
  out.reserve(list.items.size());
  for (const JsonValue& item : list.items) out.push_back(static_cast<TokenId>(*item.number()));
  return out;
}

std::vector<double> numbers_of(const JsonValue& list) {
  std::vector<double> out;
  out.reserve(list.items.size());
  for (const JsonValue& item : list.items) out.push_back(*item.number());
  return out;
}

SamplingOptions sampling(double temperature, Index top_k, double top_p) {
  SamplingOptions out;
  out.do_sample = true;
  out.temperature = temperature;
  out.top_k = top_k;
  out.top_p = top_p;
  return out;
}

double number_or(const JsonValue& value, std::string_view name, double missing) {
  return value.find(name) != nullptr ? number(value, name) : missing;
}

/// The processors of a generation_config.json with the text `settings`.
LogitsProcessors processors_of(const std::string& settings) {
  const test::TempFolder folder;
  test::write_file(folder / "generation_config.json", settings);
  GenerationSettings out;
  use_generation_defaults(read_generation_config(folder.path()), out);
  return out;
}

const std::vector<Prompt> kPrompts{
    {0, {5}, 0}, {1, {7, 3}, 0}, {2, {2, 9, 4, 4}, 0}, {40, {7, 3}, 0}};

FakeModel causal() { return FakeModel(HeadKind::kCausal, model::DefaultMask::kCausal); }

}  // namespace

TEST_CASE("greedy texts are those of transformers' generate") {
  const JsonValue root = golden();
  GenerateOptions options;
  options.max_new_tokens = static_cast<Index>(number(root, "max_new_tokens"));
  options.ends = {static_cast<TokenId>(number(root, "eos"))};
  Index ended = 0;
  // Those of recent years go beyond windows, and phi3 beyond its shorter angles.
  REQUIRE(root.find("greedy")->members.size() > 15);
  for (const JsonMember& of_model : root.find("greedy")->members) {
    const std::string& name = of_model.name;
    CAPTURE(name);
    const auto model =
        model::open_model(kData + "/model/" + name, {.precision = kernel::Precision::kF64});
    const JsonValue& cases = of_model.value;
    std::vector<Prompt> prompts;
    for (const JsonValue& one : cases.items)
      prompts.push_back({.id = prompts.size(), .ids = ids_of(*one.find("prompt"))});
    const std::vector<Generated> found = generate(*model, prompts, options);
    REQUIRE(found.size() == cases.items.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::vector<TokenId> expected = ids_of(*cases.items[i].find("new"));
      CHECK(found[i].ids == expected);
      CHECK(found[i].log_probability ==
            doctest::Approx(number(cases.items[i], "score")).epsilon(1e-6));
      CHECK(found[i].ended == (expected.back() == options.ends[0]));
      ended += found[i].ended ? 1 : 0;
    }
  }
  CHECK(ended > 0);
}

TEST_CASE("samplers leave what transformers leaves") {
  const JsonValue root = golden();
  for (const JsonValue& one : root.find("sampling")->items) {
    CAPTURE(&one - root.find("sampling")->items.data());
    const std::vector<double> expected = numbers_of(*one.find("probabilities"));
    SamplingOptions options =
        sampling(number_or(one, "temperature", 1), static_cast<Index>(number_or(one, "top_k", 0)),
                 number_or(one, "top_p", 1));
    options.min_p = number_or(one, "min_p", 0);
    options.typical_p = number_or(one, "typical_p", 1);
    options.epsilon_cutoff = number_or(one, "epsilon_cutoff", 0);
    options.eta_cutoff = number_or(one, "eta_cutoff", 0);
    const std::vector<double> found =
        sampling_probabilities(numbers_of(*one.find("logits")), options);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK((found[i] == 0) == (expected[i] == 0));
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
    }
  }
}

TEST_CASE("greedy texts and beams with each processor are those of transformers' generate") {
  const JsonValue root = golden();
  for (const std::string_view name : {"gpt2", "llama"}) {
    CAPTURE(name);
    const auto model = model::open_model(kData + "/model/" + std::string(name),
                                         {.precision = kernel::Precision::kF64});
    for (const JsonValue& one : root.find("processors")->find(name)->items) {
      GenerateOptions options;
      const std::string& settings = one.find("settings")->text;
      options.processors = processors_of(settings);
      options.max_new_tokens = static_cast<Index>(number(root, "max_new_tokens"));
      options.beams.num_beams = static_cast<Index>(number(one, "num_beams"));
      options.ends = ids_of(*one.find("eos"));
      CAPTURE(settings);
      CAPTURE(options.beams.num_beams);
      for (const JsonValue& text : one.find("texts")->items) {
        const Prompt prompt{.id = 0, .ids = ids_of(*text.find("prompt"))};
        const Generated found = generate(*model, {&prompt, 1}, options)[0];
        CHECK(found.ids == ids_of(*text.find("new")));
        if (text.find("score") != nullptr)
          CHECK(found.score == doctest::Approx(number(text, "score")).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("a text without a token that may follow is refused, and ids beyond the vocabulary") {
  GenerateOptions options;
  options.processors.no_repeat_ngram_size = 1;
  options.max_new_tokens = 30;
  const Prompt prompt{7, {5, 6}, 0};
  for (const Index beams : {1, 2}) {
    options.beams.num_beams = beams;
    const std::string message = message_of<InputError>([&] {
      generate(causal(), {&prompt, 1}, options);
    });
    CHECK(test::contains(message, "prompt 7: no token is left to choose after 10 new tokens"));
  }
  options.beams.num_beams = 1;
  options.processors = {};
  options.processors.forced_eos_token_id = {12};
  CHECK(test::contains(message_of<InputError>([&] {
                         generate(causal(), {&prompt, 1}, options);
                       }),
                       "forced_eos_token_id 12: not in the vocabulary of 12 tokens"));
}

TEST_CASE("max_length counts the prompt") {
  GenerateOptions options;
  options.max_length = 5;
  const Prompt prompt{0, {5, 6}, 0};
  CHECK(generate(causal(), {&prompt, 1}, options)[0].ids.size() == 3);
  options.beams.num_beams = 2;
  CHECK(generate(causal(), {&prompt, 1}, options)[0].ids.size() == 3);
}

TEST_CASE("frequencies of draws fit the softmax") {
  GenerateOptions options;
  options.sampling = sampling(1.3, 0, 1);
  options.max_new_tokens = 1;
  options.num_return_sequences = 6000;
  options.seed = 11;
  const std::vector<TokenId> prompt{2, 9, 4};
  const auto logits = fake_logits(prompt, 2, 12, [](Index) { return true; });
  const std::vector<double> expected = sampling_probabilities(logits, options.sampling);
  std::vector<double> counts(expected.size());
  const Prompt one{3, prompt, 0};
  for (const Generated& g : generate(causal(), {&one, 1}, options))
    ++counts[static_cast<std::size_t>(g.ids[0])];
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double mean = 6000 * expected[i];
    chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  // 11 degrees of freedom: beyond it lies 0.1 % of the distribution.
  CHECK(chi_square < 31.26);
  CHECK(chi_square > 1.0);
}

TEST_CASE("draws depend on seed, line, sample and place alone") {
  GenerateOptions options;
  options.sampling = sampling(1, 0, 1);
  options.num_return_sequences = 3;
  options.max_new_tokens = 6;
  options.seed = 5;
  const std::vector<Generated> together = generate(causal(), kPrompts, options);
  REQUIRE(together.size() == 12);
  for (std::size_t p = 0; p < kPrompts.size(); ++p) {
    options.num_return_sequences = 2;
    const std::vector<Generated> alone = generate(causal(), {&kPrompts[p], 1}, options);
    CHECK(alone[0].ids == together[3 * p].ids);
    CHECK(alone[1].ids == together[3 * p + 1].ids);
  }
  CHECK(together[0].ids != together[1].ids);  // another sample
  CHECK(together[3].ids != together[9].ids);  // another line with the same text
  options.seed = 6;
  options.num_return_sequences = 3;
  CHECK(generate(causal(), kPrompts, options)[0].ids != together[0].ids);
}

TEST_CASE("a prompt is read once for all its samples, which are those of a run of their own") {
  GenerateOptions options;
  options.sampling = sampling(1, 0, 1);
  options.num_return_sequences = 5;
  options.max_new_tokens = 1;
  const FakeModel model = causal();
  generate(model, kPrompts, options);
  CHECK(model.runs == 1);
  CHECK(model.most_tokens == 9);

  // With keys and values: some texts end at once, others go on.
  const auto gpt2 =
      model::open_model(kData + "/model/gpt2", {.precision = kernel::Precision::kF64});
  options.max_new_tokens = 12;
  options.sampling.temperature = 3;
  const std::vector<Generated> endless = generate(*gpt2, kPrompts, options);
  options.ends = {endless[1].ids[0], endless[8].ids[3]};
  const std::vector<Generated> together = generate(*gpt2, kPrompts, options);
  REQUIRE(together.size() == 20);
  CHECK(together[1].ids.size() == 1);
  Index ended = 0;
  for (std::size_t p = 0; p < kPrompts.size(); ++p) {
    for (Index count = 1; count <= 5; ++count) {
      options.num_return_sequences = count;
      const std::vector<Generated> alone = generate(*gpt2, {&kPrompts[p], 1}, options);
      REQUIRE(std::ssize(alone) == count);
      for (std::size_t k = 0; k < alone.size(); ++k) {
        const Generated& other = together[5 * p + k];
        CHECK(alone[k].id == other.id);
        CHECK(alone[k].sample == other.sample);
        CHECK(alone[k].ids == other.ids);
        CHECK(alone[k].log_probability == other.log_probability);
        ended += other.ended ? 1 : 0;
      }
    }
  }
  CHECK(ended > 1);
}

TEST_CASE("a text ends with an end, the last position, or max_new_tokens") {
  GenerateOptions options;
  options.max_new_tokens = 4;
  const Prompt prompt{0, {5, 6}, 0};
  const Generated free = generate(causal(), {&prompt, 1}, options)[0];
  CHECK(free.ids.size() == 4);
  CHECK_FALSE(free.ended);
  FakeModel narrow = causal();
  narrow.design_to_change().max_position_embeddings = 3;
  const Generated last = generate(narrow, {&prompt, 1}, options)[0];
  CHECK(last.ids == std::vector<TokenId>(free.ids.begin(), free.ids.begin() + 2));
  CHECK_FALSE(last.ended);
  options.ends = {free.ids[0]};
  const Generated ended = generate(causal(), {&prompt, 1}, options)[0];
  CHECK(ended.ids == std::vector<TokenId>{free.ids[0]});
  CHECK(ended.ended);
}

TEST_CASE("models that predict no next token are refused") {
  const auto refused = [](const FakeModel& model, bool to_target) {
    return message_of([&] { check_generation(model.design(), to_target); });
  };
  CHECK(refused(causal(), false) == "(nothing thrown)");
  CHECK(refused(FakeModel(HeadKind::kMasked), false).find("bidirectional") != std::string::npos);
  CHECK(refused(FakeModel(HeadKind::kMasked), true).find("token types") != std::string::npos);
  CHECK(refused(causal(), true).find("masked head") != std::string::npos);
  CHECK(
      refused(FakeModel(HeadKind::kMasked, model::DefaultMask::kOthers, model::Streams::kFixedKeys),
              true)
          .find("T-TA") != std::string::npos);
  CHECK(
      refused(FakeModel(HeadKind::kCausal, model::DefaultMask::kFull, model::Streams::kTwo), false)
          .find("two streams") != std::string::npos);
  FakeModel pairs(HeadKind::kMasked);
  pairs.design_to_change().type_vocab_size = 2;
  CHECK(refused(pairs, true) == "(nothing thrown)");
}

}  // namespace masque::evaluate
