// lm-write correct: words that a masked model finds unlikely, replaced by likelier ones.
#include "evaluate/write/correct.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/json/json_text.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/split.hpp"
#include "cli/input_lines.hpp"
#include "cli/table.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/model_kinds.hpp"
#include "evaluate/write/threshold_search.hpp"
#include "kernel/number/precision.hpp"
#include "masked_model.hpp"
#include "records/confusion_sets.hpp"

namespace masque::lm_write {

namespace {

// Corrected texts against what they should be.

constexpr std::string_view kJsonAdvice =
    "--field NAME reads the member NAME of the JSON objects of both inputs, --format text reads "
    "the "
    "lines as they are";

/// The texts of standard input against those of --reference.
class Judgement {
 public:
  /// The texts of the file `reference` are read as `input` says of standard input. `digits` of the
  /// shares that are printed; none: all.
  Judgement(const std::string& reference, const cli::InputOptions& input,
            const std::optional<std::string>& output, const std::optional<std::int64_t>& digits,
            cli::Session& session)
      : path_(reference),
        output_(output),
        number_(commands::ResultFormat::of(kernel::Precision::kF64, digits)) {
    std::string text = commands::read_file(path_);
    if (!input.json()) {
      if (input.format == cli::TextFormat::kAuto) refuse_json(text, input_name(path_), kJsonAdvice);
      for (const std::string_view line : split_terminated(text, '\n'))
        references_.emplace_back(without_return(line));
      return;
    }
    LineBatch batch{std::move(text)};
    cli::InputLines lines(input, input_name(path_));
    lines.each(batch,
               [&](std::uint64_t, std::string_view line) { references_.emplace_back(line); });
    lines.finish(session);
  }

  void add(const evaluate::Line& line, const std::string& output) {
    if (count_ == references_.size()) refuse(fmt::format("{} or more", count_ + 1));
    counts_.add(line.text, output, references_[count_++]);
    if (output_) texts_ += output + "\n";
  }

  void print(const cli::CommonOptions& common, cli::Session& session) {
    if (count_ != references_.size()) refuse(std::to_string(count_));
    if (output_) replace_text(*output_, texts_);
    cli::Table table(session, common,
                     {"level", "task", "right", "done", "wanted", "precision", "recall", "f1"});
    row(table, "word", "detection", counts_.word_detection);
    row(table, "word", "correction", counts_.word_correction);
    row(table, "sentence", "detection", counts_.sentence_detection);
    row(table, "sentence", "correction", counts_.sentence_correction);
    table.finish();
  }

 private:
  [[noreturn]] void refuse(const std::string& lines) const {
    throw InputError(input_name(path_), fmt::format("{} lines, expected {} as on standard input",
                                                    references_.size(), lines));
  }
  void row(cli::Table& table, const char* level, const char* task,
           const evaluate::CorrectionCount& count) const {
    table.row({level, task, count.right, count.done, count.wanted, number_.cell(count.precision()),
               number_.cell(count.recall()), number_.cell(count.f1())});
  }

  std::string path_;
  std::optional<std::string> output_;
  commands::ResultFormat number_;
  std::vector<std::string> references_;
  std::size_t count_ = 0;
  std::string texts_;
  evaluate::CorrectionCounts counts_;
};

// The command.

/// The thresholds without --threshold and --dev. The gain of an edit already contains its cost.
constexpr double kThreshold = 5;
constexpr double kThresholdOfEdits = 0;
constexpr double kEditCost = 8;
/// A model that has learnt from errors knows how rare they are.
constexpr double kThresholdOfDetector = 0;
constexpr double kEditCostOfDetector = 0;

struct Options {
  commands::OpenModelOptions open;
  commands::StreamOptions stream;
  std::optional<std::string> confusion;
  std::optional<std::int64_t> edit_distance;
  std::optional<double> edit_cost;
  std::optional<double> threshold;
  std::optional<std::string> dev;
  std::optional<std::string> reference;
  std::optional<std::string> output;
  bool per_word = false;
};

using Checked = std::vector<evaluate::CheckedWord>;

void check(const Options& o) {
  if (o.confusion && o.edit_distance)
    throw UsageError("--confusion cannot be combined with --edit-distance");
  if (o.edit_cost && !o.edit_distance) throw UsageError("--edit-cost: only with --edit-distance");
  if (o.dev && o.threshold) throw UsageError("--dev cannot be combined with --threshold");
  if (o.reference && (o.per_word || o.stream.shard || o.stream.first_record > 0)) {
    throw UsageError(
        "--reference cannot be combined with --per-word, --shard or --first-record: it prints one "
        "table");
  }
  if (o.reference && (o.stream.input.invalid == cli::Invalid::kSkip ||
                      o.stream.input.bad == cli::BadLines::kSkip)) {
    throw UsageError(
        "--invalid skip and --policy skip cannot be combined with --reference, which compares line "
        "by line");
  }
  const bool text = !o.reference && !o.per_word && !o.open.common.json;
  if (text && (o.open.digits || o.open.common.no_header || o.open.common.csv)) {
    throw UsageError(
        "--digits, --csv and --no-header: only with --per-word, --json or --reference; texts are "
        "no table");
  }
  commands::refuse_standard_input("--confusion", o.confusion);
  commands::refuse_standard_input("--dev", o.dev);
  commands::refuse_standard_input("--reference", o.reference);
  if (o.output && !o.reference)
    throw UsageError(
        "-o: only with --reference; otherwise the texts are printed to standard output");
  if (o.per_word && o.open.common.json)
    throw UsageError("--per-word cannot be combined with --json, which contains all words");
}

bool has_detector(const commands::OpenedModel& opened) {
  return opened.model->design().variants.detector.has_value();
}

double edit_cost_of(const Options& o, const commands::OpenedModel& opened) {
  return o.edit_cost.value_or(has_detector(opened) ? kEditCostOfDetector : kEditCost);
}

evaluate::CorrectOptions correct_options(const Options& o, const commands::OpenedModel& opened) {
  need_masked_head(opened);
  evaluate::CorrectOptions options;
  const auto kind = evaluate::default_kind(opened.model->design(), opened.options);
  options.one_pass = kind == evaluate::ScoreKind::kTta;
  evaluate::check_kind(kind, opened.model->design(), opened.options);
  options.detector = has_detector(opened);
  if (!options.one_pass && !options.detector) options.mask = need_mask_token(opened);
  if (o.edit_distance) options.edit_distance = static_cast<int>(*o.edit_distance);
  options.edit_cost = edit_cost_of(o, opened);
  if (o.confusion) {
    options.confusions =
        std::make_shared<const records::ConfusionSets>(records::ConfusionSets::read(*o.confusion));
  }
  options.batch_tokens = o.open.batch_tokens;
  options.mask_of = opened.mask_of;
  return options;
}

/// Lines to what a Corrector checks.
class Lines {
 public:
  explicit Lines(const commands::OpenedModel& opened)
      : tokenizer_(*opened.tokenizer), limit_(evaluate::token_limit(opened.model->design(), 0)) {}

  evaluate::Line encode(std::string_view text) const {
    return {std::string(text), evaluate::encode_sentence(tokenizer_, text, {})};
  }
  std::optional<std::string> problem(const evaluate::Line& line) const {
    if (!limit_ || line.sentence.size() <= *limit_) return std::nullopt;
    return evaluate::too_long(line.sentence.size(), *limit_);
  }

 private:
  const text::Tokenizer& tokenizer_;
  std::optional<Index> limit_;
};

/// The threshold that is best on the pairs of a file, of which a batch is in memory.
class DevPairs {
 public:
  DevPairs(const std::string& path, const evaluate::Corrector& corrector, Index batch_tokens)
      : path_(path), corrector_(corrector), batch_tokens_(batch_tokens) {}

  std::optional<evaluate::ThresholdSearch::Best> best(const Lines& lines, cli::Session& session) {
    commands::each_line_of(
        {path_}, std::nullopt,
        [&](const commands::FileLine& line) {
          const auto two = split_in_two(line.text, '\t');
          if (!two) throw InputError("expected a text, a tab and the correct text");
          evaluate::Line text = lines.encode(two->first);
          if (const auto problem = lines.problem(text)) throw InputError(*problem);
          if (tokens_ + text.sentence.size() > batch_tokens_) check();
          tokens_ += text.sentence.size();
          waiting_.push_back(std::move(text));
          references_.emplace_back(two->second);
        },
        session);
    if (waiting_.empty()) throw InputError(input_name(path_), "no line, expected pairs");
    check();
    return search_.best();
  }

 private:
  void check() {
    const std::vector<Checked> checked = corrector_.check(waiting_);
    for (std::size_t i = 0; i < waiting_.size(); ++i)
      search_.add(waiting_[i].text, checked[i], references_[i]);
    waiting_.clear();
    references_.clear();
    tokens_ = 0;
  }

  std::string path_;
  const evaluate::Corrector& corrector_;
  Index batch_tokens_;
  std::vector<evaluate::Line> waiting_;
  std::vector<std::string> references_;
  Index tokens_ = 0;
  evaluate::ThresholdSearch search_;
};

double threshold_of(const Options& o, bool detector, const evaluate::Corrector& corrector,
                    const Lines& lines, cli::Session& session) {
  const double usual = detector          ? kThresholdOfDetector
                       : o.edit_distance ? kThresholdOfEdits
                                         : kThreshold;
  if (!o.dev) return o.threshold.value_or(usual);
  const auto best = DevPairs(*o.dev, corrector, o.open.batch_tokens).best(lines, session);
  if (!best) {
    session.note(
        fmt::format("no threshold corrects any word of {}; using {}", input_name(*o.dev), usual));
    return usual;
  }
  session.note(fmt::format("threshold {:.4f}: F1 of corrected words {:.4f} on {}", best->threshold,
                           best->words.f1(), input_name(*o.dev)));
  return best->threshold;
}

/// Prints texts, or their words; with references counts and keeps them.
class CorrectionPrinter {
 public:
  CorrectionPrinter(const Options& options, double threshold, const commands::OpenedModel& opened,
                    cli::Session& session)
      : options_(options),
        threshold_(threshold),
        detector_(has_detector(opened)),
        number_(commands::ResultFormat::of(opened.model->precision(), options.open.digits)),
        session_(session) {
    JsonWriter json(provenance_);
    json.member("model", opened.path);
    json.member("precision", kernel::precision_name(opened.model->precision()));
    commands::add_given(json, opened.given);
    if (options.confusion) json.member("confusion", *options.confusion);
    if (options.edit_distance) {
      json.member("edit_distance", *options.edit_distance);
      json.member("edit_cost", edit_cost_of(options, opened));
    }
    json.member("threshold", threshold);
  }

  void header() {
    if (!options_.per_word || !commands::has_header(options_.open.common, options_.stream)) return;
    std::vector<std::string> columns{
        "id",      "word", "text", "log_probability", "replacement", "replacement_log_probability",
        "replaced"};
    if (detector_) columns.emplace_back("error_probability");
    session_.print(cli::header_line(session_, options_.open.common, columns));
  }

  void print(std::uint64_t id, const evaluate::Line& line, const Checked& words) {
    if (options_.per_word) {
      print_words(id, line, words);
    } else if (options_.open.common.json) {
      print_json(id, line, words);
    } else {
      session_.print(corrected(line, words, threshold_) + "\n");
    }
    if (session_.stdout_is_terminal()) session_.flush();
  }

 private:
  static std::string_view text_of(const evaluate::Line& line, const evaluate::CheckedWord& word) {
    return std::string_view(line.text).substr(word.span.begin, word.span.end - word.span.begin);
  }
  bool replaced(const evaluate::CheckedWord& word) const {
    return !word.replacement.empty() && word.gain() > threshold_;
  }

  void print_words(std::uint64_t id, const evaluate::Line& line, const Checked& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const evaluate::CheckedWord& word = words[i];
      const bool none = word.replacement.empty();
      std::vector<cli::Cell> cells{
          id,
          static_cast<std::uint64_t>(i),
          text_of(line, word),
          number_.cell(word.log_probability),
          none ? cli::Cell::none() : cli::Cell(word.replacement),
          none ? cli::Cell::none() : number_.cell(word.replacement_log_probability),
          replaced(word) ? "yes" : "no"};
      if (detector_) cells.push_back(number_.cell(word.error_probability.value_or(0)));
      session_.print(cli::row_line(session_, options_.open.common, cells));
    }
  }

  void print_json(std::uint64_t id, const evaluate::Line& line, const Checked& words) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("id", id).member("text", corrected(line, words, threshold_));
    json.member("original_text", line.text).key("words").begin_array();
    for (const evaluate::CheckedWord& word : words) {
      json.begin_object().member("text", text_of(line, word));
      json.key("span").array(std::vector<std::uint32_t>{word.span.begin, word.span.end});
      json.raw_member("log_probability", number_.json(word.log_probability));
      if (!word.replacement.empty()) {
        json.member("replacement", word.replacement);
        json.raw_member("replacement_log_probability",
                        number_.json(word.replacement_log_probability));
      }
      if (word.error_probability)
        json.raw_member("error_probability", number_.json(*word.error_probability));
      json.member("replaced", replaced(word)).end_object();
    }
    json.end_array().raw(provenance_).end_object();
    session_.print(out + "\n");
  }

  const Options& options_;
  double threshold_;
  bool detector_;  ///< the model has one
  commands::ResultFormat number_;
  std::string provenance_;
  cli::Session& session_;
};

cli::ExitCode run_correct(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  check(o);
  cli::need_stream(command);
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  const evaluate::CorrectOptions options = correct_options(o, opened);
  const evaluate::Corrector corrector(*opened.model, *opened.tokenizer, options);
  const Lines lines(opened);
  std::optional<Judgement> judgement;
  if (o.reference)
    judgement.emplace(*o.reference, o.stream.input, o.output, o.open.digits, session);
  session.note(fmt::format("{}: {}; {}", opened.path, opened.description(),
                           options.detector   ? "with a detector, one pass per line"
                           : options.one_pass ? "one pass per line"
                                              : "one pass per word"));
  const double threshold = threshold_of(o, options.detector, corrector, lines, session);
  CorrectionPrinter printer(o, threshold, opened, session);
  printer.header();
  std::vector<evaluate::Line> waiting;
  std::vector<std::uint64_t> ids;
  Index tokens = 0;
  commands::LineWork work;
  work.label = "correcting";
  work.flush = [&] {
    const std::vector<Checked> checked = corrector.check(waiting);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (judgement) {
        judgement->add(waiting[i], corrected(waiting[i], checked[i], threshold));
      } else {
        printer.print(ids[i], waiting[i], checked[i]);
      }
    }
    waiting.clear();
    ids.clear();
    tokens = 0;
  };
  work.use = [&](std::uint64_t id, std::string_view text) -> std::optional<std::string> {
    evaluate::Line line = lines.encode(text);
    if (auto problem = lines.problem(line)) return problem;
    if (tokens + line.sentence.size() > o.open.batch_tokens) work.flush();
    tokens += line.sentence.size();
    waiting.push_back(std::move(line));
    ids.push_back(id);
    return std::nullopt;
  };
  const cli::ExitCode code = commands::run_lines(o.stream, command, work, session);
  if (judgement) judgement->print(o.open.common, session);
  return code;
}

}  // namespace

void declare_correct(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("correct", "replaces improbable words of each line by more probable ones");
  c.example("lm-write correct bert-base-uncased/ --edit-distance 2 < text",
            "candidates: words of the vocabulary at most two typing errors away");
  c.example("lm-write correct tta/ --dev pairs.tsv < text",
            "one pass per line; chooses the best threshold on pairs of wrong and correct texts");
  c.example("lm-write correct bert-base-uncased/ --confusion sets.tsv --threshold 2 < text",
            "candidates from confusion sets, such as their, there, they're");
  c.example("lm-write correct soft-masked/ --per-word < text",
            "a model of lm-train --objective correct: the probability that each word is wrong, and "
            "its correction");
  c.example("lm-write correct bert-base-uncased/ --reference right.txt < wrong.txt",
            "precision, recall and F1 of words and of lines");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.option("--confusion", "FILE", o->confusion,
           "check only words of these sets, against the others of their set; one set per line, "
           "separated by tabs");
  c.option("--edit-distance", "N", o->edit_distance, cli::AllowedRange{1, 100},
           "consider only words at most N edits away: insertion, deletion, substitution, swap of "
           "neighbours [any word that is one token]");
  c.option("--edit-cost", "X", o->edit_cost, cli::AllowedRange{0, 1e6},
           "nats subtracted for each edit, −log of the probability of an edit [8; model with a "
           "detector: 0]");
  c.option("--threshold", "X", o->threshold, cli::AllowedRange{-1e6, 1e6},
           "replace a word if its gain in nats, after the cost of edits, exceeds X [5; with "
           "--edit-distance or a model with a detector: 0]");
  c.option("--dev", "FILE", o->dev,
           "choose the threshold on these pairs: a text, a tab, the correct text");
  c.option(
      "--reference", "FILE", o->reference,
      "correct text of each line, read as the input; prints precision, recall and F1 instead of "
      "texts");
  c.option("-o,--output", "FILE", o->output, "with --reference: write the corrected texts to FILE");
  c.flag("--per-word", o->per_word, "print one row per word, as TSV");
  commands::add_digits(c, o->open.digits);
  commands::add_stream(c, o->stream);
  c.flag("--json", o->open.common.json, "print one JSON object per line instead of TSV");
  cli::add_csv(c, o->open.common);
  c.writes({"output"});
  c.action([o, &c](cli::Session& session) { return run_correct(*o, c, session); });
}

}  // namespace masque::lm_write
