// What encoder–decoders score and write, against transformers
// (scripts/goldens/encoder_decoders.py).
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json/json.hpp"
#include "evaluate/attention/attention_stats.hpp"
#include "evaluate/attention/head_maps.hpp"
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

Sequence sequence_of(const test::ModelCase& one, std::size_t line) {
  Sequence sequence{.number = line, .ids = one.lines[line].ids};
  sequence.source = one.lines[line].source;
  return sequence;
}

/// Rows of transformers' weights over the source, of one head over all lines of `one`.
std::vector<std::vector<double>> rows_over_sources(const test::ModelCase& one, Index layer,
                                                   Index head) {
  std::vector<std::vector<double>> rows;
  for (std::size_t l = 0; l < one.lines.size(); ++l) {
    const auto maps = test::expected(one, fmt::format("{}.cross_attentions", l)).value();
    const std::size_t heads = maps.shape[1], queries = maps.shape[2], keys = maps.shape[3];
    const std::size_t begin =
        (static_cast<std::size_t>(layer) * heads + static_cast<std::size_t>(head)) * queries * keys;
    for (std::size_t i = 0; i < queries; ++i) {
      const auto row = maps.values.begin() + static_cast<std::ptrdiff_t>(begin + i * keys);
      rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(keys));
    }
  }
  return rows;
}

template <class Of>
double mean_over(const std::vector<std::vector<double>>& rows, const Of& of) {
  double sum = 0;
  for (const std::vector<double>& row : rows) sum += of(row);
  return sum / static_cast<double>(rows.size());
}

double entropy_of(const std::vector<double>& row) {
  double sum = 0;
  for (const double p : row) sum -= p > 0 ? p * std::log(p) : 0;
  return sum;
}

}  // namespace

TEST_CASE("statistics of attention to sources, whose rows and columns are of two texts") {
  for (const test::ModelCase& one : test::encoder_decoder_cases()) {
    CAPTURE(one.name);
    const auto model = open_pair(one);
    AttentionStatsOptions options;
    options.compares_layers = true;
    options.of_source = true;
    options.batch_tokens = 50;
    AttentionStats stats(*model, options);
    Index queries = 0;
    for (std::size_t l = 0; l < one.lines.size(); ++l) {
      MarkedItem item;
      item.sequence = sequence_of(one, l);
      // The first token of each source.
      item.special.assign(item.sequence.source.size(), 0);
      item.special[0] = 1;
      queries += item.sequence.size();
      stats.add(std::move(item));
    }
    stats.flush();
    const AttentionTotals& totals = stats.totals();
    CHECK(totals.layers == model->design().num_hidden_layers);
    CHECK(totals.tokens == static_cast<std::uint64_t>(queries));
    for (Index layer = 0; layer < totals.layers; ++layer) {
      for (Index head = 0; head < totals.heads; ++head) {
        const auto rows = rows_over_sources(one, layer, head);
        REQUIRE(std::ssize(rows) == queries);
        const HeadTotals& own = totals.of(layer, head);
        const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-4); };
        CHECK(own.mean(HeadField::kEntropy) == near(mean_over(rows, entropy_of)));
        const double first = mean_over(rows, [](const auto& row) { return row.front(); });
        CHECK(own.mean(HeadField::kFirst) == near(first));
        CHECK(own.mean(HeadField::kSpecial) == near(first));
        CHECK(own.mean(HeadField::kLast) ==
              near(mean_over(rows, [](const auto& row) { return row.back(); })));
        CHECK(own.mean(HeadField::kMaxWeight) == near(mean_over(rows, [](const auto& row) {
                return *std::ranges::max_element(row);
              })));
        for (const HeadFieldInfo& info : kHeadFieldTable) {
          CAPTURE(info.name);
          if (!is_of_source(info.field)) CHECK(own.count(info.field) == 0);
        }
        CHECK((own.count(HeadField::kBelowDivergence) > 0) == (layer > 0));
      }
    }
  }
}

TEST_CASE("each head over a source") {
  const test::ModelCase one = test::encoder_decoder_cases().front();
  const auto model = open_pair(one);
  for (std::size_t l = 0; l < one.lines.size(); ++l) {
    Index seen = 0;
    each_head(*model, sequence_of(one, l), {.layer = 1, .head = 0, .of_source = true},
              [&](Index layer, Index head, MatrixView<const double> weights) {
                ++seen;
                CHECK(layer == 1);
                CHECK(head == 0);
                REQUIRE(weights.rows == std::ssize(one.lines[l].ids));
                REQUIRE(weights.columns == std::ssize(one.lines[l].source));
                double sum = 0;
                for (const double p : weights.row_span(weights.rows - 1)) sum += p;
                CHECK(sum == doctest::Approx(1));
              });
    CHECK(seen == 1);
  }
}

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
