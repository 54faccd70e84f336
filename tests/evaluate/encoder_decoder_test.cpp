// What encoder–decoders score and write, against transformers
// (scripts/goldens/encoder_decoders.py).
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json/json.hpp"
#include "evaluate/score/batching.hpp"
#include "evaluate/score/sentence.hpp"
#include "evaluate/score/text_scorer.hpp"
#include "evaluate/write/generate.hpp"
#include "evaluate/write/generation_config.hpp"
#include "model/model.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"
#include "text/tokenizer.hpp"

namespace masque::evaluate {
namespace {

std::unique_ptr<model::Model> open_pair(const test::ModelCase& one) {
  model::ModelOptions options;
  options.precision = kernel::Precision::kF64;
  options.decoder = true;
  return model::open_model(one.folder, options);
}

/// The options of generate() that a generation_config.json of `text` asks for, and what the
/// checkpoint's `own` says besides, for a model of so many `positions` (0: any number).
GenerateOptions pair_options_of(const std::string& text, const GenerationConfig& own,
                                Index positions) {
  const test::TempFolder folder;
  test::write_file(folder / "generation_config.json", text);
  GenerationSettings settings;
  use_generation_defaults(read_generation_config(folder.path()), settings);
  use_generation_defaults(own, settings);
  GenerateOptions options;
  options.processors = settings;
  if (settings.max_new_tokens) {
    options.max_new_tokens = *settings.max_new_tokens;
  } else if (settings.max_length) {
    options.max_length = *settings.max_length;
  } else {
    options.longest = positions;
  }
  options.num_return_sequences = settings.num_return_sequences.value_or(1);
  options.beams.num_beams = settings.num_beams.value_or(1);
  options.beams.length_penalty = settings.length_penalty.value_or(1);
  options.beams.early_stopping = settings.early_stopping.value_or(EarlyStopping::kFalse);
  options.ends = own.ends.value();
  return options;
}

std::vector<Prompt> source_prompts_of(const test::ModelCase& one, TokenId start) {
  std::vector<Prompt> prompts;
  for (std::size_t l = 0; l < one.lines.size(); ++l) {
    Prompt prompt{.id = l, .ids = {start}};
    prompt.encoder_ids = one.lines[l].source;
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace

TEST_CASE("encoder–decoders write what transformers' generate writes") {
  for (const test::ModelCase& one : test::encoder_decoder_cases()) {
    CAPTURE(one.name);
    const auto model = open_pair(one);
    const GenerationConfig own = read_generation_config(one.folder);
    REQUIRE(own.decoder_start);
    const std::vector<Prompt> prompts = source_prompts_of(one, *own.decoder_start);
    std::ifstream in(one.folder + "/generated.jsonl");
    int lines = 0;
    for (std::string text; std::getline(in, text); ++lines) {
      const JsonValue line = parse_json_file(text, "generated.jsonl");
      const JsonValue& options = *line.find("options");
      const std::string settings = text.substr(options.begin, options.end - options.begin);
      CAPTURE(settings);
      const std::vector<Generated> written = generate(
          *model, prompts, pair_options_of(settings, own, model->design().max_position_embeddings));
      const std::vector<JsonValue>& texts = line.find("texts")->items;
      REQUIRE(written.size() == texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) {
        std::vector<TokenId> ids;
        for (const JsonValue& id : texts[i].items)
          ids.push_back(static_cast<TokenId>(id.integer().value()));
        CHECK(written[i].ids == ids);
      }
    }
    CHECK(lines == 8);
  }
}

TEST_CASE("mBART's tokenizers put the language of targets around these") {
  std::unique_ptr<model::Model> scored;
  for (const test::ModelCase& one : test::encoder_decoder_cases()) {
    if (one.name == "mbart") scored = open_pair(one);
  }
  REQUIRE(scored);
  for (const std::string kind : {"mbart", "mbart_same", "mbart50"}) {
    CAPTURE(kind);
    const std::string folder = std::string(MASQUE_TEST_DATA "/target_languages/") + kind;
    const text::Tokenizer tokenizer = text::Tokenizer::open(folder);
    ScoreOptions options;
    options.kind = ScoreKind::kCausal;
    std::vector<double> scores;
    TextScorer scorer(*scored, options,
                      [&](ScoredSentence&& sentence) { scores.push_back(sentence.score); });
    std::vector<double> expected;
    std::ifstream in(folder + "/expected.jsonl");
    int lines = 0;
    for (std::string text; std::getline(in, text); ++lines) {
      const JsonValue line = parse_json_file(text, "expected.jsonl");
      const auto ids = [&](const char* name) {
        std::vector<TokenId> all;
        for (const JsonValue& id : line.find(name)->items)
          all.push_back(static_cast<TokenId>(id.integer().value()));
        return all;
      };
      const Sentence sentence =
          encode_target_sentence(tokenizer, line.find("source")->text, line.find("target")->text,
                                 {}, scored->design().source.value());
      CHECK(sentence.source == ids("source_ids"));
      CHECK(std::vector<TokenId>(sentence.ids.begin() + 1, sentence.ids.end()) ==
            ids("target_ids"));
      CHECK(sentence.ids.front() == sentence.ids.back());
      const JsonValue* score = line.find("score");
      if (score == nullptr) continue;
      expected.push_back(score->number().value());
      scorer.add(static_cast<std::uint64_t>(lines), sentence);
    }
    scorer.flush();
    CHECK(lines == 3);
    REQUIRE(scores.size() == expected.size());
    for (std::size_t i = 0; i < scores.size(); ++i)
      CHECK(scores[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
}

TEST_CASE("targets of several sources run together, each with its own") {
  for (const test::ModelCase& one : test::encoder_decoder_cases()) {
    CAPTURE(one.name);
    const auto model = open_pair(one);
    std::vector<double> found(one.lines.size());
    // Room for two of them at a time.
    JobRunner runner(*model, 50);
    for (std::size_t l = 0; l < one.lines.size(); ++l) {
      Job job;
      job.ids = one.lines[l].ids;
      job.source = one.lines[l].source;
      job.rows = {std::ssize(job.ids) - 1};
      job.targets = {9};
      job.out = {&found[l]};
      runner.add(std::move(job));
    }
    runner.run();
    for (std::size_t l = 0; l < one.lines.size(); ++l) {
      const auto logits = test::expected(one, fmt::format("{}.logits", l));
      REQUIRE(logits);
      const std::size_t width = logits->shape.back();
      const auto last = std::span(logits->values).last(width);
      double sum = 0;
      for (const double logit : last) sum += std::exp(logit);
      CHECK(found[l] == doctest::Approx(last[9] - std::log(sum)).epsilon(1e-5));
    }
  }
}

}  // namespace masque::evaluate
