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
    throw UsageError(
        fmt::format("--policy {}: not supported by choose, expected error, skip, first or last",
                    probe::policy_text(scoring.options.policy)));
  }
  if (scoring.options.kind == probe::ScoreKind::kMdlm)
    throw UsageError("--kind mdlm gives only a bound, expected another kind");
  if (scoring.options.kind == probe::ScoreKind::kMaskless)
    throw UsageError(
        "--kind maskless gives one number per text, expected a kind that scores tokens");
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
  commands::add_given(json, commands::given_input(o.stream.input));
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
    if (given) throw UsageError(fmt::format("{} cannot be combined with {}", name, with));
  }
}

}  // namespace

void add_choose_options(cli::Command& c, ChooseOptions& o) {
  commands::add_open_options(c, o.open);
  commands::add_batch_tokens(c, o.open);
  c.arguments("FILE", o.files, "one text per line, or tab-separated columns [standard input]",
              cli::Need::kOptional);
  c.option("--pattern", "TEXT", o.pattern,
           "a sentence with X for the text, Y for a second text if there is one, and [MASK] for "
           "the label's word",
           cli::Need::kRequired);
  c.option("--labels", "LIST", o.labels,
           "a word for each label: great,terrible; or several: great|good,terrible|bad; or with "
           "the names of the labels in the file: 1=great|good,0=terrible",
           cli::Need::kRequired);
  c.option("--text-columns", "LIST", o.text_columns,
           "columns of X and Y, counted from 1; tabs separate, quotes are text [1; with Y: 1,2]");
  c.option("--label-column", "N", o.label_column, cli::AllowedRange{1, kMostColumns},
           "column of the correct label; adds it to each row and reports the accuracy");
  c.flag("--calibrate", o.calibrate,
         "divides probabilities by those for content-free inputs (Zhao et al. 2021)");
  c.option("--content-free", "LIST", o.content_free,
           fmt::format("inputs of --calibrate, separated by commas; one may be empty [{}]",
                       kContentFree));
  c.option("--length-normalization", "HOW", o.length_normalization,
           "divides a word's score by ((5 + tokens) / 6)^ALPHA (gnmt:ALPHA) or tokens^ALPHA "
           "(power:ALPHA) [none]");
  c.flag("--scores", o.scores, "adds the probability and the score of every label");
  c.flag(
      "--summary", o.summary,
      "prints one row for all texts: accuracy and its interval, macro F1, Matthews' correlation");
  c.flag("--write-records", o.write_records,
         "prints training records for lm-train --objective records, with the correct label's word "
         "as the target");
  c.option("-k,--shots", "N", o.shots, cli::AllowedRange{1, 1e9},
           "with --write-records: draws N texts of each label [all texts]");
  cli::add_seed(c, o.seed, "with --shots: seed of the draw");
  commands::add_scoring(c, o.scoring,
                        {.kind = "score of a label's word, a sum over its tokens [by the model's "
                                 "head: pll-word-l2r, tta, causal, electra or electric]",
                         .policy = "for a text that is too long: error, skip its line, or keep the "
                                   "first or last tokens of X and Y, and all of the pattern; skip "
                                   "also for other bad lines [error]"});
  commands::add_digits(c, o.open.digits);
  commands::add_stream(c, o.stream, {.policy = false});
  add_table(c, o.open.common);
}

void check_choose(const ChooseOptions& o) {
  if (o.files.size() > 1)
    throw UsageError(fmt::format("{} files, expected at most one", o.files.size()));
  if (o.content_free && !o.calibrate) throw UsageError("--content-free needs --calibrate");
  if (o.summary && !o.label_column) throw UsageError("--summary needs --label-column");
  if (o.summary) {
    refuse_given({{o.scores, "--scores"},
                  {o.write_records, "--write-records"},
                  {o.open.digits.has_value(), "--digits"}},
                 "--summary");
  }
  if (!o.write_records) {
    if (o.shots) throw UsageError("--shots needs --write-records");
    if (o.seed) throw UsageError("--seed needs --shots");
    return;
  }
  if (!o.label_column) throw UsageError("--write-records needs --label-column");
  if (o.seed && !o.shots) throw UsageError("--seed needs --shots");
  refuse_given({{o.calibrate, "--calibrate"},
                {o.scores, "--scores"},
                {o.length_normalization.has_value(), "--length-normalization"},
                {o.open.digits.has_value(), "--digits"},
                {o.open.common.json, "--json"},
                {o.open.common.csv, "--csv"},
                {o.open.common.no_header, "--no-header"}},
               "--write-records");
  if (o.shots && o.stream.shard)
    throw UsageError("--shard cannot be combined with --shots, which draws from all texts");
}

LabelledColumns::LabelledColumns(const ChooseOptions& o, std::size_t texts) {
  const std::string list = o.text_columns.value_or(texts == 2 ? "1,2" : "1");
  for (const std::string_view column : split(list, ',')) {
    const auto number = parse_number<std::int64_t>(column);
    if (!number || *number < 1 || *number > kMostColumns) {
      throw UsageError(
          fmt::format("--text-columns: found '{}', expected column numbers from 1", escape(list)));
    }
    texts_.push_back(static_cast<std::size_t>(*number - 1));
  }
  if (texts_.size() != texts) {
    throw UsageError(fmt::format("--text-columns: {} columns, expected {} for this --pattern",
                                 texts_.size(), texts));
  }
  if (texts == 2 && texts_[0] == texts_[1])
    throw UsageError(fmt::format("--text-columns: column {} twice, expected two different columns",
                                 texts_[0] + 1));
  if (!o.label_column) return;
  gold_ = static_cast<std::size_t>(*o.label_column - 1);
  if (std::ranges::count(texts_, *gold_) > 0) {
    throw UsageError(fmt::format(
        "--label-column {}: this column is a text, expected another column", *o.label_column));
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
    throw InputError(fmt::format("label '{}' is not in --labels, expected one of {}",
                                 escape(columns[*gold_]),
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
