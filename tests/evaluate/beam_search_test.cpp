// Beam search against transformers (scripts/goldens/generate.py) and every text that there is.
#include "evaluate/write/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "evaluate/write/generate.hpp"
#include "fake_model.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using model::HeadKind;

const std::string kBeamData = MASQUE_TEST_DATA;

std::vector<TokenId> token_list(const JsonValue& list) {
  std::vector<TokenId> out;
  for (const JsonValue& item : list.items) out.push_back(static_cast<TokenId>(*item.number()));
  return out;
}

double number_of(const JsonValue& value, std::string_view name) {
  return *value.find(name)->number();
}

GenerateOptions options_of(const JsonValue& one, Index max_new_tokens) {
  GenerateOptions options;
  options.max_new_tokens = max_new_tokens;
  options.num_return_sequences = static_cast<Index>(number_of(one, "num_return_sequences"));
  options.ends = token_list(*one.find("eos"));
  options.beams.num_beams = static_cast<Index>(number_of(one, "num_beams"));
  options.beams.length_penalty = number_of(one, "length_penalty");
  options.beams.early_stopping =
      named_value("early_stopping", one.find("early_stopping")->text, early_stopping_names());
  return options;
}

FakeModel causal_model() { return FakeModel(HeadKind::kCausal, model::DefaultMask::kCausal); }

}  // namespace

TEST_CASE("beam search finds transformers' texts and scores") {
  const std::string path = kBeamData + "/evaluate/generate.json";
  const JsonValue root = parse_json_file(read_text(path, 1 << 20), path);
  const auto max_new_tokens = static_cast<Index>(number_of(root, "max_new_tokens"));
  Index ended = 0, texts = 0;
  for (const JsonMember& of_model : root.find("beams")->members) {
    const std::string& name = of_model.name;
    CAPTURE(name);
    const auto model =
        model::open_model(kBeamData + "/model/" + name, {.precision = kernel::Precision::kF64});
    for (const JsonValue& one : of_model.value.items) {
      const GenerateOptions options = options_of(one, max_new_tokens);
      std::vector<Prompt> prompts;
      for (const JsonValue& text : one.find("texts")->items)
        prompts.push_back({.id = prompts.size(), .ids = token_list(*text.find("prompt"))});
      const std::vector<Generated> found = generate(*model, prompts, options);
      REQUIRE(std::ssize(found) == std::ssize(prompts) * options.num_return_sequences);
      std::size_t at = 0;
      for (const JsonValue& text : one.find("texts")->items) {
        const JsonValue& scores = *text.find("scores");
        for (std::size_t rank = 0; rank < scores.items.size(); ++rank, ++at) {
          CHECK(found[at].ids == token_list(text.find("new")->items[rank]));
          CHECK(found[at].score == doctest::Approx(*scores.items[rank].number()).epsilon(2e-6));
          CHECK(found[at].sample == static_cast<Index>(rank));
          ended += found[at].ended ? 1 : 0;
          ++texts;
        }
      }
    }
  }
  CHECK(ended > texts / 4);
  CHECK(ended < texts);
}

TEST_CASE("a beam as wide as can be finds the likeliest text of all") {
  GenerateOptions options;
  options.max_new_tokens = 2;
  options.beams.num_beams = 6;
  options.num_return_sequences = 3;
  const FakeModel model = causal_model();
  const Prompt prompt{.id = 3, .ids = {2, 9}};
  const auto next = [&](const std::vector<TokenId>& ids, TokenId token) {
    return log_softmax(fake_logits(ids, std::ssize(ids) - 1, 12, [](Index) { return true; }),
                       token);
  };
  std::vector<double> all;
  for (TokenId a = 0; a < 12; ++a) {
    for (TokenId b = 0; b < 12; ++b) all.push_back((next({2, 9}, a) + next({2, 9, a}, b)) / 2);
  }
  std::ranges::sort(all, std::greater<>());
  const std::vector<Generated> found = generate(model, {&prompt, 1}, options);
  REQUIRE(found.size() == 3);
  CHECK(found[0].score == doctest::Approx(all[0]).epsilon(1e-9));
  CHECK(found[0].log_probability == doctest::Approx(2 * all[0]).epsilon(1e-9));
  for (std::size_t i = 1; i < 3; ++i) CHECK(found[i].score <= found[i - 1].score);
  CHECK(found[0].id == 3);
}

TEST_CASE("prompts of a search do not depend on each other") {
  GenerateOptions options;
  options.max_new_tokens = 5;
  options.beams.num_beams = 3;
  options.ends = {4, 7};
  options.num_return_sequences = 2;
  const std::vector<Prompt> prompts{{0, {5}, 0}, {1, {7, 3}, 0}, {2, {2, 9, 4, 4}, 0}};
  const std::vector<Generated> together = generate(causal_model(), prompts, options);
  REQUIRE(together.size() == 6);
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const std::vector<Generated> alone = generate(causal_model(), {&prompts[p], 1}, options);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(alone[rank].ids == together[2 * p + rank].ids);
      CHECK(alone[rank].score == together[2 * p + rank].score);
    }
  }
}

TEST_CASE("a search ends at the model's last position") {
  GenerateOptions options;
  options.max_new_tokens = 9;
  options.beams.num_beams = 3;
  FakeModel narrow = causal_model();
  narrow.design_to_change().max_position_embeddings = 4;
  const Prompt prompt{0, {5, 6}, 0};
  const std::vector<Generated> found = generate(narrow, {&prompt, 1}, options);
  CHECK(found[0].ids.size() == 3);
  CHECK_FALSE(found[0].ended);
}

TEST_CASE("beams that a vocabulary has no candidates for are refused") {
  GenerateOptions options;
  options.beams.num_beams = 6;
  CHECK_NOTHROW(check_beams(options, 12));
  options.ends = {1, 2};
  CHECK(test::message_of<UsageError>([&] {
          check_beams(options, 12);
        }).find("expected at most 4 with") != std::string::npos);
  options.beams.num_beams = 2;
  options.num_return_sequences = 3;
  CHECK_THROWS_AS(check_beams(options, 12), UsageError);
  options.beams.num_beams = 1;
  CHECK_NOTHROW(check_beams(options, 12));
}

}  // namespace masque::evaluate
