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
#include "evaluate/write/generate.hpp"
#include "evaluate/write/generation_config.hpp"
#include "model/model.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

std::unique_ptr<model::Model> open_pair(const test::ModelCase& one) {
  model::ModelOptions options;
  options.precision = kernel::Precision::kF64;
  options.decoder = true;
  return model::open_model(one.folder, options);
}

/// The options of generate() that a generation_config.json of `text` asks for, and what the
/// checkpoint's `own` says besides.
GenerateOptions pair_options_of(const std::string& text, const GenerationConfig& own) {
  const test::TempFolder folder;
  test::write_file(folder / "generation_config.json", text);
  GenerationSettings settings;
  use_generation_defaults(read_generation_config(folder.path()), settings);
  use_generation_defaults(own, settings);
  GenerateOptions options;
  options.processors = settings;
  options.max_new_tokens = settings.max_new_tokens.value();
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
      const std::vector<Generated> written =
          generate(*model, prompts, pair_options_of(settings, own));
      const std::vector<JsonValue>& texts = line.find("texts")->items;
      REQUIRE(written.size() == texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) {
        std::vector<TokenId> ids;
        for (const JsonValue& id : texts[i].items)
          ids.push_back(static_cast<TokenId>(id.integer().value()));
        CHECK(written[i].ids == ids);
      }
    }
    CHECK(lines == 5);
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
