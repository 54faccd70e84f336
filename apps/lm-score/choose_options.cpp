#include "choose_options.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"
#include "commands/result_format.hpp"

namespace masque::lm_score {

namespace {

/// Zhao et al. 2021, §5: the last one is empty.
constexpr const char* kContentFree = "N/A,[MASK],";
constexpr std::int64_t kMostColumns = 1'000'000;

probe::ClozeEncoder make_encoder(const ChooseOptions& o, const commands::OpenedModel& opened,
                                 const commands::Scoring& scoring) {
  using Policy = probe::LengthPolicy::Kind;
  const Policy policy = scoring.options.policy.kind;
  if (policy == Policy::kChunk || policy == Policy::kSlide) {
    throw UsageError(fmt::format("--policy {}: expected error, first or last",
                                 probe::policy_text(scoring.options.policy)));
  }
  if (scoring.options.kind == probe::ScoreKind::kMdlm)
    throw UsageError("--kind mdlm: a bound from draws, expected another kind");
  if (scoring.options.kind == probe::ScoreKind::kMaskless)
    throw UsageError("--kind maskless: one number a text, expected a kind of tokens");
  const text::Tokenizer& tokenizer = *opened.tokenizer;
  const std::optional<TokenId> mask = tokenizer.roles().mask;
  return {tokenizer,
          probe::ClozePattern(o.pattern, mask ? tokenizer.token(*mask) : std::string_view()),
          {.sentence = scoring.sentence,
           .policy = scoring.options.policy,
           .longest = probe::token_limit(opened.model->design(), scoring.options.max_length),
           .mask = mask}};
}

std::string choose_provenance(const ChooseOptions& o, const commands::OpenedModel& opened,
                              const commands::Scoring& scoring) {
  std::string out = commands::provenance_json(scoring, opened) + ",";
  JsonWriter json(out);
  json.member("pattern", o.pattern).member("labels", o.labels);
  if (o.text_columns) json.member("text_columns", *o.text_columns);
  if (o.label_column) json.member("label_column", *o.label_column);
  if (o.length_normalization) json.member("length_normalization", *o.length_normalization);
  if (o.calibrate) json.member("content_free", o.content_free.value_or(kContentFree));
  return out;
}

/// Throws UsageError for the first option that is given and not expected.
void refuse_given(std::initializer_list<std::pair<bool, const char*>> options,
                  std::string_view with) {
  for (const auto& [given, name] : options) {
    if (given) throw UsageError(fmt::format("{}: expected without {}", name, with));
  }
}

}  // namespace

void add_choose_options(cli::Command& c, ChooseOptions& o) {
  commands::add_open_options(c, o.open);
  commands::add_batch_tokens(c, o.open);
  c.arguments("FILE", o.files,
              "lines with a text, or columns between tabs; without it standard input",
              cli::Need::kOptional);
  c.option("--pattern", "TEXT", o.pattern,
           "where the text (X), a second text (Y) and the label ([MASK]) stand in a sentence",
           cli::Need::kRequired);
  c.option("--labels", "LIST", o.labels,
           "the words that stand for the labels: great,terrible; several for one: "
           "great|good,terrible|bad; with the file's names: 1=great|good,0=terrible",
           cli::Need::kRequired);
  c.option("--text-columns", "LIST", o.text_columns,
           "columns of X and Y, from 1, without quotes [1, or with a Y 1,2]");
  c.option("--label-column", "N", o.label_column, cli::AllowedRange{1, kMostColumns},
           "column of the right label, which the result is compared with");
  c.flag("--calibrate", o.calibrate,
         "divides probabilities by those of texts without content (Zhao et al. 2021)");
  c.option("--content-free", "LIST", o.content_free,
           fmt::format("these texts, separated by commas [{}]", kContentFree));
  c.option("--length-normalization", "HOW", o.length_normalization,
           "divides a word's score by a power of its tokens: none, gnmt:ALPHA or power:ALPHA");
  c.flag("--scores", o.scores, "columns for the probability and the score of every label, too");
  c.flag("--summary", o.summary,
         "instead of a row a text one of all: accuracy, its interval, F1, Matthews' correlation");
  c.flag("--write-records", o.write_records,
         "instead of rows records with the right label in its place, for lm-train --objective "
         "records");
  c.option("-k,--shots", "N", o.shots, cli::AllowedRange{1, 1e9},
           "records of so many texts of each label [of all texts]");
  cli::add_seed(c, o.seed, "seed of the draw of --shots");
  commands::add_scoring(
      c, o.scoring,
      {.kind = "what is summed over the tokens of a label's word [by the model's head: "
               "pll-word-l2r, tta, causal, electra or electric]",
       .policy = "for a text that is too long: error; first or last: of X (and Y), not of the "
                 "pattern, the first or last tokens are read [error]"});
  commands::add_digits(c, o.open.digits);
  commands::add_stream(c, o.stream);
  add_table(c, o.open.common);
}

void check_choose(const ChooseOptions& o) {
  if (o.files.size() > 1)
    throw UsageError(fmt::format("{} files, expected one at most", o.files.size()));
  if (o.content_free && !o.calibrate) throw UsageError("--content-free: expected with --calibrate");
  if (o.summary && !o.label_column) throw UsageError("--summary: expected with --label-column");
  if (o.summary) {
    refuse_given({{o.scores, "--scores"},
                  {o.write_records, "--write-records"},
                  {o.open.digits.has_value(), "--digits"}},
                 "--summary");
  }
  if (!o.write_records) {
    if (o.shots) throw UsageError("--shots: expected with --write-records");
    if (o.seed) throw UsageError("--seed: expected with --shots");
    return;
  }
  if (!o.label_column) throw UsageError("--write-records: expected with --label-column");
  if (o.seed && !o.shots) throw UsageError("--seed: expected with --shots");
  refuse_given({{o.calibrate, "--calibrate"},
                {o.scores, "--scores"},
                {o.length_normalization.has_value(), "--length-normalization"},
                {o.open.digits.has_value(), "--digits"},
                {o.open.common.json, "--json"},
                {o.open.common.no_header, "--no-header"}},
               "--write-records, which prints JSON lines");
  if (o.shots && o.stream.shard)
    throw UsageError("--shard: expected without --shots, which are drawn from all texts");
}

LabelledColumns::LabelledColumns(const ChooseOptions& o, std::size_t texts) {
  const std::string list = o.text_columns.value_or(texts == 2 ? "1,2" : "1");
  for (const std::string_view column : split(list, ',')) {
    const auto number = parse_number<std::int64_t>(column);
    if (!number || *number < 1 || *number > kMostColumns) {
      throw UsageError(
          fmt::format("--text-columns: found '{}', expected numbers from 1", escape(list)));
    }
    texts_.push_back(static_cast<std::size_t>(*number - 1));
  }
  if (texts_.size() != texts) {
    throw UsageError(fmt::format("--text-columns: {} columns, expected {} for this --pattern",
                                 texts_.size(), texts));
  }
  if (texts == 2 && texts_[0] == texts_[1])
    throw UsageError(fmt::format("--text-columns: {} twice, expected two columns", texts_[0] + 1));
  if (!o.label_column) return;
  gold_ = static_cast<std::size_t>(*o.label_column - 1);
  if (std::ranges::count(texts_, *gold_) > 0) {
    throw UsageError(
        fmt::format("--label-column {}: that is a text, expected another column", *o.label_column));
  }
}

LabelledLine LabelledColumns::read(std::string_view line,
                                   const std::vector<probe::VerbalizedLabel>& labels) const {
  const std::vector<std::string_view> columns = split(line, '\t');
  const std::size_t most = std::max(*std::ranges::max_element(texts_), gold_.value_or(0));
  if (columns.size() <= most) {
    throw InputError(fmt::format("{} column{}, expected at least {}", columns.size(),
                                 columns.size() == 1 ? "" : "s", most + 1));
  }
  LabelledLine out;
  for (const std::size_t column : texts_) out.texts.emplace_back(columns[column]);
  if (!gold_) return out;
  const auto found = std::ranges::find(labels, columns[*gold_], &probe::VerbalizedLabel::name);
  if (found == labels.end()) {
    throw InputError(fmt::format("label '{}', expected one of {}", escape(columns[*gold_]),
                                 escape(comma_list(labels, &probe::VerbalizedLabel::name))));
  }
  out.gold = found - labels.begin();
  return out;
}

Chooser::Chooser(const ChooseOptions& o, const commands::OpenedModel& opened, cli::Session& session)
    : scoring(commands::make_scoring(o.scoring, o.open, opened, session)),
      encoder(make_encoder(o, opened, scoring)),
      words(probe::label_words(encoder, *opened.tokenizer, probe::parse_verbalizer(o.labels))),
      length(probe::parse_length_normalization(o.length_normalization.value_or("none"))),
      columns(o, encoder.pattern().texts()),
      provenance(choose_provenance(o, opened, scoring)) {}

std::vector<std::string> content_free_inputs(const ChooseOptions& o) {
  const std::string list = o.content_free.value_or(kContentFree);
  std::vector<std::string> inputs;
  for (const std::string_view input : split(list, ',')) inputs.emplace_back(input);
  return inputs;
}

}  // namespace masque::lm_score
