#include "word_rows.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/split.hpp"
#include "base/utf8.hpp"

namespace masque::lm_score {

namespace {

/// Why the kind and the words cannot be corrected; nothing if they can.
void check_correction(const WordOptions& options, const probe::ScoreOptions& score,
                      const model::Design& design) {
  if (score.kind != probe::ScoreKind::kCausal || design.streams == model::Streams::kTwo) {
    throw UsageError(
        fmt::format("--space-correction is only for --kind causal with models of one stream, found "
                    "a {} model and --kind {}",
                    design.family, probe::kind_name(score.kind)));
  }
  if (options.words == probe::WordUnit::kTokenizer)
    throw UsageError("--space-correction cannot be combined with --words tokenizer");
}

}  // namespace

void add_word_options(cli::Command& command, WordOptions& options) {
  command.flag("--per-word", options.per_word,
               "one row per word; with --json, lists of words and their log-probabilities");
  command.choice("--words", options.words, probe::word_unit_names(),
                 "with --per-word: words are separated by white space, or are the tokenizer's "
                 "pre-tokens [space]");
  command.flag("--space-correction", options.space_correction,
               "with --per-word, causal: includes the probability that the word ends; for "
               "tokenizers whose tokens begin with the space before a word");
  command.flag("--regions", options.regions,
               "with --per-word: reads a second column with a label for each word; one row per run "
               "of words with the same label");
}

WordRows::WordRows(const WordOptions& options, commands::Scoring& scoring,
                   const commands::OpenedModel& opened, cli::Session& session)
    : options_(options) {
  if (options.words)
    scoring.given.push_back(
        {"words", std::string(name_in(probe::word_unit_names(), *options.words))});
  if (options.regions && options.words == probe::WordUnit::kTokenizer)
    throw UsageError("--regions cannot be combined with --words tokenizer");
  if (options.space_correction) {
    check_correction(options, scoring.options, opened.model->design());
    const auto problem = input_error_message([&] { correction_.emplace(*opened.tokenizer); });
    if (problem) throw InputError(opened.path, *problem);
    scoring.options.sets = correction_->sets();
    scoring.given.push_back({"space_correction", "true", false});
  }
  const bool first = scoring.options.kind != probe::ScoreKind::kCausal ||
                     opened.model->design().streams == model::Streams::kTwo ||
                     encode_sentence(*opened.tokenizer, "a", scoring.sentence).prefix > 0;
  session.note(fmt::format(
      "words {}; the first token is {}scored",
      options.words == probe::WordUnit::kTokenizer ? "of the tokenizer" : "between white space",
      first ? "" : "not "));
}

std::string_view WordRows::text_of(std::string_view line) const {
  if (!options_.regions) return line;
  const auto columns = split_in_two(line, '\t');
  if (!columns) {
    throw InputError(fmt::format(
        "columns: {}, expected 2 with --regions: a text and its labels, separated by a tab",
        split(line, '\t').size()));
  }
  return columns->first;
}

void WordRows::add(std::string_view line, const probe::Sentence& sentence) {
  Line kept{std::string(text_of(line)), {}};
  const std::vector<probe::WordTokens> words =
      words_of(sentence, kept.text, options_.words.value_or(probe::WordUnit::kSpace));
  if (options_.regions) {
    kept.rows = regions_of(words, line.substr(kept.text.size() + 1));
  } else {
    for (const probe::WordTokens& word : words) kept.rows.push_back({{}, word});
  }
  lines_.push_back(std::move(kept));
}

std::vector<std::string> WordRows::columns() const {
  if (options_.regions) return {"id", "region", "label", "text", "tokens", "log_probability"};
  return {"id", "word", "text", "tokens", "log_probability"};
}

WordRows::Line WordRows::next() {
  MASQUE_CHECK(!lines_.empty());
  Line line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

std::string_view WordRows::part(const Line& line, const probe::WordTokens& row) const {
  return std::string_view(line.text).substr(row.place.begin, row.place.end - row.place.begin);
}

std::optional<double> WordRows::score(const probe::ScoredSentence& scored,
                                      const probe::WordTokens& row) const {
  return word_score(scored, row, correction_ ? &*correction_ : nullptr);
}

void WordRows::each_row(const probe::ScoredSentence& scored, const commands::ResultFormat& number,
                        const std::function<void(const std::vector<cli::Cell>&)>& use) {
  const Line line = next();
  std::uint64_t at = 0;
  for (const probe::Region& row : line.rows) {
    std::vector<cli::Cell> cells{scored.id, at++};
    if (options_.regions) cells.emplace_back(row.label);
    cells.emplace_back(part(line, row.tokens));
    cells.emplace_back(row.tokens.end - row.tokens.begin);
    cells.push_back(number.cell(score(scored, row.tokens)));
    use(cells);
  }
}

void WordRows::members(const probe::ScoredSentence& scored, const commands::ResultFormat& number,
                       JsonWriter& json) {
  const Line line = next();
  const auto list = [&](const char* name, const auto& add) {
    json.key(fmt::format("{}_{}", options_.regions ? "region" : "word", name)).begin_array();
    for (const probe::Region& row : line.rows) add(row);
    json.end_array();
  };
  if (options_.regions) list("labels", [&](const probe::Region& row) { json.value(row.label); });
  list("texts", [&](const probe::Region& row) { json.value(part(line, row.tokens)); });
  // In code points, as a text of Python counts.
  std::size_t bytes = 0;
  std::size_t characters = 0;
  const auto count_to = [&](std::size_t place) {
    if (place < bytes) bytes = characters = 0;  // words seldom overlap
    characters += count_code_points(std::string_view(line.text).substr(bytes, place - bytes));
    bytes = place;
    return characters;
  };
  list("spans", [&](const probe::Region& row) {
    const std::size_t begin = count_to(row.tokens.place.begin);
    json.begin_array().value(begin).value(count_to(row.tokens.place.end)).end_array();
  });
  list("tokens", [&](const probe::Region& row) { json.value(row.tokens.end - row.tokens.begin); });
  list("log_probabilities",
       [&](const probe::Region& row) { json.raw(number.cell(score(scored, row.tokens)).json()); });
}

}  // namespace masque::lm_score
