// lm-score choose: the label of each text, by the words that fill a pattern best.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "aggregates.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/score/few_shots.hpp"
#include "evaluate/score/label_scorer.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::lm_score {

namespace {

// Options of lm-score choose, and what they are with a model.

struct ChooseOptions {
  commands::OpenModelOptions open;
  commands::ScoringOptions scoring{.masked_kind = evaluate::ScoreKind::kPllWordL2r};
  commands::StreamOptions stream;
  std::vector<std::string> files;
  std::string pattern;
  std::string labels;
  std::optional<std::string> text_columns;
  std::optional<std::int64_t> label_column;
  bool calibrate = false;
  std::optional<std::string> content_free;
  std::optional<std::string> length_normalization;
  bool scores = false;
  bool summary = false;
  bool write_records = false;
  std::optional<std::int64_t> shots;
  std::optional<std::uint64_t> seed;
};

/// A line's columns.
struct LabelledLine {
  std::vector<std::string> texts;
  std::optional<Index> gold;  ///< the place of its label, if --label-column is given
};

/// Which columns of a line are what.
class LabelledColumns {
 public:
  /// Throws UsageError for columns that are no numbers, not as many as `texts`, or the same.
  LabelledColumns(const ChooseOptions& options, std::size_t texts);

  /// Throws InputError (message only) for a column that is not there, and a label that is none of
  /// these.
  LabelledLine read(std::string_view line,
                    const std::vector<evaluate::VerbalizedLabel>& labels) const;

 private:
  std::vector<std::size_t> texts_;  ///< from 0
  std::optional<std::size_t> gold_;
};

/// All that decides a label, made for a model. Stays where it is.
struct Chooser {
  Chooser(const ChooseOptions& options, const commands::OpenedModel& opened, cli::Session& session);
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  commands::Scoring scoring;
  evaluate::ClozeEncoder encoder;
  evaluate::LabelWords words;
  evaluate::LengthNormalization length;
  LabelledColumns columns;
  std::string provenance;  ///< members of a JSON object
};

/// Zhao et al. 2021, §5: the last one is empty.
constexpr const char* kContentFree = "N/A,[MASK],";
constexpr std::int64_t kMostColumns = 1'000'000;

evaluate::ClozeEncoder make_encoder(const ChooseOptions& o, const commands::OpenedModel& opened,
                                    const commands::Scoring& scoring) {
  using Policy = evaluate::LengthPolicy::Kind;
  const Policy policy = scoring.options.policy.kind;
  if (policy == Policy::kChunk || policy == Policy::kSlide) {
    throw UsageError(
        fmt::format("--policy {}: not supported by choose, expected error, skip, first or last",
                    evaluate::policy_text(scoring.options.policy)));
  }
  if (scoring.options.kind == evaluate::ScoreKind::kMdlm)
    throw UsageError("--kind mdlm gives only a bound, expected another kind");
  if (scoring.options.kind == evaluate::ScoreKind::kMaskless)
    throw UsageError(
        "--kind maskless gives one number per text, expected a kind that scores tokens");
  const text::Tokenizer& tokenizer = *opened.tokenizer;
  const std::optional<TokenId> mask = tokenizer.roles().mask;
  return {tokenizer,
          evaluate::ClozePattern(o.pattern, mask ? tokenizer.token(*mask) : std::string_view()),
          {.sentence = scoring.sentence,
           .policy = scoring.options.policy,
           .longest = evaluate::token_limit(opened.model->design(), scoring.options.max_length),
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

/// Throws UsageError for options that do not go together.
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
                                   const std::vector<evaluate::VerbalizedLabel>& labels) const {
  const std::vector<std::string_view> columns = split(line, '\t');
  const std::size_t most = std::max(*std::ranges::max_element(texts_), gold_.value_or(0));
  if (columns.size() <= most) {
    throw InputError(
        fmt::format("{}, expected at least {}", counted(columns.size(), "column"), most + 1));
  }
  LabelledLine out;
  for (const std::size_t column : texts_) out.texts.emplace_back(columns[column]);
  if (!gold_) return out;
  const auto found = std::ranges::find(labels, columns[*gold_], &evaluate::VerbalizedLabel::name);
  if (found == labels.end()) {
    throw InputError(fmt::format("label '{}' is not in --labels, expected one of {}",
                                 escape(columns[*gold_]),
                                 escape(comma_list(labels, &evaluate::VerbalizedLabel::name))));
  }
  out.gold = found - labels.begin();
  return out;
}

Chooser::Chooser(const ChooseOptions& o, const commands::OpenedModel& opened, cli::Session& session)
    : scoring(commands::make_scoring(o.scoring, o.open, opened, session)),
      encoder(make_encoder(o, opened, scoring)),
      words(
          evaluate::label_words(encoder, *opened.tokenizer, evaluate::parse_verbalizer(o.labels))),
      length(evaluate::parse_length_normalization(o.length_normalization.value_or("none"))),
      columns(o, encoder.pattern().texts()),
      provenance(choose_provenance(o, opened, scoring)) {}

/// The inputs of --calibrate.
std::vector<std::string> content_free_inputs(const ChooseOptions& o) {
  const std::string list = o.content_free.value_or(kContentFree);
  std::vector<std::string> inputs;
  for (const std::string_view input : split(list, ',')) inputs.emplace_back(input);
  return inputs;
}

// The command.

std::vector<std::string> names_of(const std::vector<evaluate::VerbalizedLabel>& labels) {
  std::vector<std::string> names;
  names.reserve(labels.size());
  for (const evaluate::VerbalizedLabel& label : labels) names.push_back(label.name);
  return names;
}

/// A text whose label is known.
struct Chosen {
  std::uint64_t id = 0;
  std::optional<Index> gold;
  std::vector<double> probabilities;
  std::vector<double> scores;
};

/// Prints labels: a row or an object a text.
class ChoicePrinter {
 public:
  ChoicePrinter(const ChooseOptions& options, const Chooser& chooser,
                const commands::OpenedModel& opened, cli::Session& session)
      : options_(options),
        names_(names_of(chooser.words.labels)),
        number_(commands::ResultFormat::of(opened.model->precision(), options.open.digits)),
        provenance_(chooser.provenance),
        session_(session) {}

  void header() {
    if (!commands::has_header(options_.open.common, options_.stream)) return;
    std::vector<std::string> columns{"id", "label", "probability"};
    if (options_.label_column) columns.emplace_back("gold");
    if (options_.scores) {
      for (const std::string& name : names_) columns.push_back(fmt::format("p({})", name));
      for (const std::string& name : names_) columns.push_back(fmt::format("score({})", name));
    }
    session_.print(cli::header_line(session_, options_.open.common, columns));
  }

  void print(const Chosen& chosen) {
    const auto best = static_cast<std::size_t>(evaluate::likeliest_label(chosen.probabilities));
    session_.print(options_.open.common.json ? object_of(chosen, best) : row_of(chosen, best));
    if (session_.stdout_is_terminal()) session_.flush();
  }

 private:
  const std::string& name(Index label) const { return names_[static_cast<std::size_t>(label)]; }

  std::string row_of(const Chosen& chosen, std::size_t best) const {
    std::vector<cli::Cell> cells{chosen.id, names_[best], number_.cell(chosen.probabilities[best])};
    if (chosen.gold) cells.emplace_back(name(*chosen.gold));
    if (options_.scores) {
      for (const double p : chosen.probabilities) cells.push_back(number_.cell(p));
      for (const double score : chosen.scores) cells.push_back(number_.cell(score));
    }
    return cli::row_line(session_, options_.open.common, cells);
  }

  std::string object_of(const Chosen& chosen, std::size_t best) const {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("id", chosen.id).member("label", names_[best]);
    json.raw_member("probability", number_.json(chosen.probabilities[best]));
    if (chosen.gold) json.member("gold", name(*chosen.gold));
    if (options_.scores) {
      add_numbers("probabilities", chosen.probabilities, json);
      add_numbers("scores", chosen.scores, json);
    }
    json.raw(provenance_).end_object();
    return out + "\n";
  }

  void add_numbers(const char* key, const std::vector<double>& numbers, JsonWriter& json) const {
    json.key(key).begin_object();
    for (std::size_t l = 0; l < names_.size(); ++l)
      json.raw_member(names_[l], number_.json(numbers[l]));
    json.end_object();
  }

  const ChooseOptions& options_;
  std::vector<std::string> names_;
  commands::ResultFormat number_;
  std::string provenance_;
  cli::Session& session_;
};

/// How lines are read. The last column of a table ends before a carriage return.
commands::StreamOptions lines_of(const ChooseOptions& o, const commands::Scoring& scoring) {
  commands::StreamOptions stream = commands::scored_stream(o.stream, scoring);
  stream.input.crlf = stream.input.crlf || o.text_columns || o.label_column;
  return stream;
}

/// Does what an InputError of which is about a line.
void of_line(const ChooseOptions& o, std::uint64_t id, const std::function<void()>& work) {
  const auto problem = input_error_message(work);
  if (problem)
    throw InputError(input_name(o.stream.file),
                     fmt::format("line {}: {}", id - o.stream.first_record + 1, *problem));
}

std::vector<double> content_free(const ChooseOptions& o, const commands::OpenedModel& opened,
                                 const Chooser& chooser, cli::Session& session) {
  std::vector<double> found;
  if (!o.calibrate) return found;
  const auto problem = input_error_message([&] {
    found =
        content_free_probabilities(*opened.model, chooser.encoder, chooser.words,
                                   chooser.scoring.options, chooser.length, content_free_inputs(o));
  });
  if (problem) throw InputError(fmt::format("--content-free: {}", *problem));
  std::string list;
  for (std::size_t l = 0; l < found.size(); ++l)
    list += fmt::format("{}{} {:.4f}", l > 0 ? ", " : "", escape(chooser.words.labels[l].name),
                        found[l]);
  session.note(fmt::format("content-free probabilities: {}", list));
  return found;
}

/// Chooses labels, and prints rows or a summary.
cli::ExitCode choose_labels(const ChooseOptions& o, const commands::OpenedModel& opened,
                            const Chooser& chooser, const cli::Command& command,
                            cli::Session& session) {
  const std::vector<double> prior = content_free(o, opened, chooser, session);
  const auto labels = static_cast<Index>(chooser.words.labels.size());
  Choices choices{names_of(chooser.words.labels), evaluate::Confusion(labels)};
  ChoicePrinter printer(o, chooser, opened, session);
  std::deque<std::optional<Index>> golds;
  evaluate::LabelScorer scorer(
      *opened.model, chooser.encoder, chooser.words, chooser.scoring.options, chooser.length,
      [&](evaluate::LabelScores&& found) {
        Chosen chosen{.id = found.id,
                      .gold = golds.front(),
                      .probabilities = evaluate::label_probabilities(found.scores),
                      .scores = found.scores};
        golds.pop_front();
        if (!prior.empty())
          chosen.probabilities = evaluate::calibrated(chosen.probabilities, prior);
        if (chosen.gold)
          choices.confusion.add(*chosen.gold, evaluate::likeliest_label(chosen.probabilities));
        if (!o.summary) printer.print(chosen);
      });
  session.note(fmt::format(
      "{} labels, words of {}{}; {}", labels, chooser.words.most_tokens > 1 ? "up to " : "",
      chooser.words.most_tokens == 1 ? "1 token"
                                     : fmt::format("{} tokens", chooser.words.most_tokens),
      scorer.one_pass() ? "one pass per text" : "separate passes for each word"));
  if (!o.summary) printer.header();
  evaluate::ShortenedTexts shortened;
  commands::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view text) -> std::optional<std::string> {
    std::vector<evaluate::ClozeSentence> sentences;
    auto problem = input_error_message([&] {
      const LabelledLine line = chooser.columns.read(text, chooser.words.labels);
      sentences = scorer.sentences(line.texts);
      golds.push_back(line.gold);
    });
    if (problem) return problem;
    // A text is cut at the same token for all words.
    shortened.add(sentences.front().left_out);
    scorer.add(id, std::move(sentences));
    return std::nullopt;
  };
  work.flush = [&] { scorer.flush(); };
  commands::InputPart part;
  if (o.summary) work.part = &part;
  const cli::ExitCode code =
      commands::run_lines(lines_of(o, chooser.scoring), command, work, session);
  commands::note_shortened(shortened, session);
  if (o.summary) {
    commands::refuse_empty(choices.confusion.total() > 0, code, o.stream, std::nullopt,
                           "no lines, expected labelled texts");
    print_choices(choices, with_shard(chooser.provenance, o.stream.shard, opened, part),
                  o.open.common, session);
  } else if (o.label_column && choices.confusion.total() > 0) {
    const evaluate::Confusion& c = choices.confusion;
    const evaluate::Interval interval = evaluate::wilson_interval(c.right(), c.total());
    session.note(fmt::format("{} of {} texts correct: accuracy {:.4f} ({:.4f} to {:.4f})",
                             c.right(), c.total(), c.accuracy(), interval.low, interval.high));
  }
  return code;
}

/// Prints records of all texts, or of some of each label.
cli::ExitCode write_records(const ChooseOptions& o, const commands::OpenedModel& opened,
                            const Chooser& chooser, const cli::Command& command,
                            cli::Session& session) {
  const evaluate::ScoreKind kind = chooser.scoring.options.kind;
  if (!evaluate::has_cloze_records(kind) ||
      opened.model->design().streams == model::Streams::kTwo) {
    throw UsageError(
        fmt::format("--write-records: not supported for --kind {} and a {} model, expected a "
                    "masked kind of a model with one stream, or tta",
                    evaluate::kind_name(kind), opened.model->design().family));
  }
  const std::optional<TokenId> mask = opened.tokenizer->roles().mask;
  if (evaluate::is_masked(kind) && !mask)
    throw InputError(opened.path, "the tokenizer has no mask token, expected one");
  evaluate::ShortenedTexts shortened;
  const auto print = [&](Index label, const std::vector<std::string>& texts) {
    const std::string& word = chooser.words.labels[static_cast<std::size_t>(label)].words.front();
    const evaluate::ClozeSentence cloze =
        chooser.encoder.encode(texts, word, chooser.words.most_tokens);
    shortened.add(cloze.left_out);
    std::string out;
    for (const records::Record& record : cloze_records(cloze, kind, mask.value_or(0)))
      append_record(record, out);
    session.print(out);
  };
  std::optional<evaluate::ShotSampler> shots;
  if (o.shots) shots.emplace(std::ssize(chooser.words.labels), *o.shots, o.seed.value_or(0));
  commands::LineWork work;
  work.flush = [] {};
  work.use = [&](std::uint64_t id, std::string_view text) {
    return input_error_message([&] {
      const LabelledLine line = chooser.columns.read(text, chooser.words.labels);
      if (shots) {
        shots->add({id, *line.gold, line.texts});
      } else {
        print(*line.gold, line.texts);
      }
    });
  };
  const cli::ExitCode code =
      commands::run_lines(lines_of(o, chooser.scoring), command, work, session);
  if (!shots) commands::note_shortened(shortened, session);
  if (!shots) return code;
  std::vector<evaluate::Shot> drawn;
  const auto problem = input_error_message([&] { drawn = shots->drawn(chooser.words.labels); });
  if (problem) throw InputError(input_name(o.stream.file), *problem);
  for (const evaluate::Shot& shot : drawn)
    of_line(o, shot.id, [&] { print(shot.label, shot.texts); });
  commands::note_shortened(shortened, session);
  return code;
}

cli::ExitCode run(ChooseOptions& o, const cli::Command& command, cli::Session& session) {
  check_choose(o);
  session.configure(o.open.common);
  if (!o.files.empty()) o.stream.file = o.files.front();
  if (o.stream.file == "-") cli::need_stream(command);
  if (o.summary) commands::print_part_as_json(o.open.common, o.stream.shard);
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  const Chooser chooser(o, opened, session);
  if (o.write_records) return write_records(o, opened, chooser, command, session);
  return choose_labels(o, opened, chooser, command, session);
}

}  // namespace

void declare_choose(cli::Command& tool) {
  auto o = std::make_shared<ChooseOptions>();
  cli::Command& c = tool.subcommand(
      "choose", "classifies texts by the word that best fills a pattern, without training");
  c.example(
      "lm-score choose bert-base-uncased/ --pattern 'X It was [MASK].' --labels great,terrible "
      "reviews.txt",
      "the more probable of two words after each review");
  c.example(
      "lm-score choose bert-base-uncased/ --pattern 'X It was [MASK].' --labels "
      "'1=great|good,0=terrible|bad' --label-column 2 --summary --calibrate dev.tsv",
      "accuracy on a file with the labels 1 and 0");
  c.example(
      "lm-score choose bert-base-uncased/ --pattern 'X? [MASK], Y' --labels "
      "'entailment=Yes,neutral=Maybe,contradiction=No' < pairs.tsv",
      "classifies pairs of texts");
  c.example(
      "lm-score choose model/ --pattern 'X It was [MASK].' --labels 1=great,0=terrible "
      "--label-column 2 --write-records -k 32 train.tsv > shots.jsonl",
      "32 examples of each label; then train: lm-train shots.jsonl --format records --objective "
      "records --init model/");
  add_choose_options(c, *o);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
