// lm-score choose: the label of each text, by the words that fill a pattern best.
#include <deque>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "aggregates.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/json_writer.hpp"
#include "base/parallel.hpp"
#include "choose_options.hpp"
#include "commands.hpp"
#include "commands/result_format.hpp"
#include "probe/score/few_shots.hpp"
#include "probe/statistics/summary.hpp"

namespace masque::lm_score {

namespace {

std::vector<std::string> names_of(const std::vector<probe::VerbalizedLabel>& labels) {
  std::vector<std::string> names;
  names.reserve(labels.size());
  for (const probe::VerbalizedLabel& label : labels) names.push_back(label.name);
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
    const auto best = static_cast<std::size_t>(probe::likeliest_label(chosen.probabilities));
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
  Choices choices{names_of(chooser.words.labels), probe::Confusion(labels)};
  ChoicePrinter printer(o, chooser, opened, session);
  std::deque<std::optional<Index>> golds;
  probe::LabelScorer scorer(
      *opened.model, chooser.encoder, chooser.words, chooser.scoring.options, chooser.length,
      [&](probe::LabelScores&& found) {
        Chosen chosen{.id = found.id,
                      .gold = golds.front(),
                      .probabilities = probe::label_probabilities(found.scores),
                      .scores = found.scores};
        golds.pop_front();
        if (!prior.empty()) chosen.probabilities = probe::calibrated(chosen.probabilities, prior);
        if (chosen.gold)
          choices.confusion.add(*chosen.gold, probe::likeliest_label(chosen.probabilities));
        if (!o.summary) printer.print(chosen);
      });
  session.note(fmt::format(
      "{} labels, words of {}{}; {}", labels, chooser.words.most_tokens > 1 ? "up to " : "",
      chooser.words.most_tokens == 1 ? "1 token"
                                     : fmt::format("{} tokens", chooser.words.most_tokens),
      scorer.one_pass() ? "one pass per text" : "separate passes for each word"));
  if (!o.summary) printer.header();
  probe::ShortenedTexts shortened;
  commands::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view text) -> std::optional<std::string> {
    std::vector<probe::ClozeSentence> sentences;
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
  const cli::ExitCode code = commands::run_lines(commands::scored_stream(o.stream, chooser.scoring),
                                                 command, work, session);
  commands::note_shortened(shortened, session);
  if (o.summary) {
    commands::refuse_empty(choices.confusion.total() > 0, code, o.stream, std::nullopt,
                           "no lines, expected labelled texts");
    print_choices(choices, with_shard(chooser.provenance, o.stream.shard), o.open.common, session);
  } else if (o.label_column && choices.confusion.total() > 0) {
    const probe::Confusion& c = choices.confusion;
    const probe::Interval interval = probe::wilson_interval(c.right(), c.total());
    session.note(fmt::format("{} of {} texts correct: accuracy {:.4f} ({:.4f} to {:.4f})",
                             c.right(), c.total(), c.accuracy(), interval.low, interval.high));
  }
  return code;
}

/// Prints records of all texts, or of some of each label.
cli::ExitCode write_records(const ChooseOptions& o, const commands::OpenedModel& opened,
                            const Chooser& chooser, const cli::Command& command,
                            cli::Session& session) {
  const probe::ScoreKind kind = chooser.scoring.options.kind;
  if (!probe::has_cloze_records(kind) || opened.model->design().streams == model::Streams::kTwo) {
    throw UsageError(
        fmt::format("--write-records: not supported for --kind {} and a {} model, expected a "
                    "masked kind of a model with one stream, or tta",
                    probe::kind_name(kind), opened.model->design().family));
  }
  const std::optional<TokenId> mask = opened.tokenizer->roles().mask;
  if (probe::is_masked(kind) && !mask)
    throw InputError(opened.path, "the tokenizer has no mask token, expected one");
  probe::ShortenedTexts shortened;
  const auto print = [&](Index label, const std::vector<std::string>& texts) {
    const std::string& word = chooser.words.labels[static_cast<std::size_t>(label)].words.front();
    const probe::ClozeSentence cloze =
        chooser.encoder.encode(texts, word, chooser.words.most_tokens);
    shortened.add(cloze.left_out);
    std::string out;
    for (const records::Record& record : cloze_records(cloze, kind, mask.value_or(0)))
      append_record(record, out);
    session.print(out);
  };
  std::optional<probe::ShotSampler> shots;
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
  const cli::ExitCode code = commands::run_lines(commands::scored_stream(o.stream, chooser.scoring),
                                                 command, work, session);
  if (!shots) commands::note_shortened(shortened, session);
  if (!shots) return code;
  std::vector<probe::Shot> drawn;
  const auto problem = input_error_message([&] { drawn = shots->drawn(chooser.words.labels); });
  if (problem) throw InputError(input_name(o.stream.file), *problem);
  for (const probe::Shot& shot : drawn) of_line(o, shot.id, [&] { print(shot.label, shot.texts); });
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
