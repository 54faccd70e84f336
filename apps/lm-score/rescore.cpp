// lm-score rescore: the best hypothesis of a list by two scores.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
#include "commands/number_list.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "evaluate/score/nbest.hpp"

namespace masque::lm_score {

namespace {

using evaluate::LengthNormalization;
using evaluate::Utterance;
using evaluate::WordErrors;

struct Options {
  commands::OpenModelOptions open;
  commands::ScoringOptions scoring;
  std::string file;
  std::optional<std::string> dev;
  std::optional<double> weight;
  std::optional<std::string> weights;
  std::string length_normalization = "none";
  std::optional<std::string> output;
};

/// 0, 0.05 … 1, or the numbers of a list. Throws UsageError.
std::vector<double> parse_weights(const std::optional<std::string>& list) {
  if (list) return commands::parse_numbers("weights", *list, 0, 1e6);
  std::vector<double> out;
  for (int i = 0; i <= 20; ++i) out.push_back(i / 20.0);
  return out;
}

void score_lists(std::vector<Utterance>& utterances, const std::string& path,
                 const commands::OpenedModel& opened, const commands::Scoring& scoring,
                 cli::Session& session) {
  std::vector<evaluate::Hypothesis*> hypotheses;
  for (Utterance& u : utterances) {
    for (evaluate::Hypothesis& h : u.hypotheses) hypotheses.push_back(&h);
  }
  const auto progress = session.progress("scoring");
  evaluate::TextScorer scorer(*opened.model, scoring.options, [&](evaluate::ScoredSentence&& s) {
    hypotheses[s.id]->language_score = s.score;
    hypotheses[s.id]->tokens = s.tokens;
    if (progress) progress(s.id + 1, hypotheses.size());
  });
  std::uint64_t id = 0;
  for (const Utterance& u : utterances) {
    for (const evaluate::Hypothesis& h : u.hypotheses) {
      evaluate::Sentence sentence = encode_sentence(*opened.tokenizer, h.text, scoring.sentence);
      if (const auto problem = scorer.length_problem(sentence))
        throw InputError(input_name(path),
                         fmt::format("utterance '{}': {}", escape(u.name), *problem));
      scorer.add(id++, std::move(sentence));
    }
  }
  scorer.flush();
  session.clear_progress();
  commands::note_shortened(scorer.shortened(), session);
}

/// Rows of word errors.
class ErrorTable {
 public:
  ErrorTable(const Options& options, const LengthNormalization& length, cli::Session& session)
      : length_(length),
        number_(commands::ResultFormat::of(kernel::Precision::kF64, options.open.digits)),
        table_(session, options.open.common,
               {"file", "choice", "weight", "utterances", "words", "substitutions", "deletions",
                "insertions", "wer"}) {}

  WordErrors at(const std::string& file, const char* choice, double weight,
                std::span<const Utterance> utterances) {
    const WordErrors errors = errors_at(utterances, weight, length_);
    row(file, choice, number_.cell(weight), utterances.size(), errors);
    return errors;
  }
  void oracle(const std::string& file, std::span<const Utterance> utterances) {
    row(file, "oracle", cli::Cell::none(), utterances.size(), oracle_errors(utterances));
  }
  void finish() { table_.finish(); }

 private:
  void row(const std::string& file, const char* choice, const cli::Cell& weight, std::size_t count,
           const WordErrors& e) {
    table_.row({file, choice, weight, static_cast<std::uint64_t>(count), e.words, e.substitutions,
                e.deletions, e.insertions, number_.cell(e.rate())});
  }

  const LengthNormalization& length_;
  commands::ResultFormat number_;
  cli::Table table_;
};

void write_chosen(const std::string& path, std::span<const Utterance> utterances, double weight,
                  const LengthNormalization& length) {
  std::string out;
  for (const Utterance& u : utterances)
    out += fmt::format("{}\t{}\n", u.name, u.hypotheses[choose(u, weight, length)].text);
  replace_text(path, out);
}

void check(const Options& o) {
  if (o.dev.has_value() == o.weight.has_value())
    throw UsageError(
        "expected exactly one of --dev FILE, other lists with references to choose the weight on, "
        "and --weight X, which also fits lists without references");
  if (o.weight && o.weights)
    throw UsageError("--weights cannot be combined with --weight (use it with --dev)");
  if (o.file == "-" && o.dev == "-")
    throw UsageError("standard input twice, expected another file for --dev");
}

/// Throws InputError for what is not one field of a line of -o.
void check_fields(std::span<const Utterance> utterances, const std::string& path) {
  const auto apart = [](const std::string& text) {
    return text.find_first_of("\t\r\n") != std::string::npos;
  };
  for (const Utterance& u : utterances) {
    const bool bad = apart(u.name) || std::any_of(u.hypotheses.begin(), u.hypotheses.end(),
                                                  [&](const auto& h) { return apart(h.text); });
    if (!bad) continue;
    throw InputError(
        input_name(path),
        fmt::format(
            "utterance '{}': a tab or an end of line in a text, expected none: -o cannot write it",
            escape(u.name)));
  }
}

/// Errors are counted of what has references; the rest is chosen alone.
void check_references(const Options& o, std::span<const Utterance> test,
                      std::span<const Utterance> dev) {
  if (o.dev && !has_references(dev)) {
    throw InputError(input_name(*o.dev),
                     "no references, expected references to choose the weight (or use --weight X)");
  }
  if (o.dev && !o.output && !has_references(test)) {
    throw UsageError(
        "--dev prints a table of errors: expected -o FILE for the hypotheses, as FILE has no "
        "references (or use --weight X)");
  }
}

void print_chosen(std::span<const Utterance> utterances, double weight,
                  const LengthNormalization& length, const commands::ResultFormat& number,
                  const cli::CommonOptions& common, cli::Session& session) {
  cli::Table table(session, common, {"utterance", "index", "score", "hypothesis"});
  for (const Utterance& u : utterances) {
    const std::size_t best = choose(u, weight, length);
    const evaluate::Hypothesis& h = u.hypotheses[best];
    table.row({u.name, static_cast<std::uint64_t>(best),
               number.cell(combined_score(h, weight, length)), h.text});
  }
  table.finish();
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.open.common);
  check(o);
  commands::refuse_skip(o.scoring);
  const std::vector<double> weights = parse_weights(o.weights);
  const LengthNormalization length = evaluate::parse_length_normalization(o.length_normalization);
  const auto read = [&](const std::string& path) {
    std::uint64_t surrogates = 0;
    auto lists = evaluate::read_nbest(commands::read_file(path), input_name(path), &surrogates);
    if (surrogates > 0)
      session.note(
          fmt::format("{}: lone surrogates replaced by U+FFFD: {}", input_name(path), surrogates));
    return lists;
  };
  std::vector<Utterance> test = read(o.file);
  if (o.output) check_fields(test, o.file);
  std::vector<Utterance> dev;
  if (o.dev) dev = read(*o.dev);
  check_references(o, test, dev);
  std::error_code ignored;  // of standard input: another file
  if (o.dev && std::filesystem::equivalent(*o.dev, o.file, ignored)) {
    session.note(
        fmt::format("{}: the weight is chosen on the lists that are rescored: the rates "
                    "are better than those of other lists",
                    o.file));
  }
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  const commands::Scoring scoring = commands::make_scoring(o.scoring, o.open, opened, session);
  const bool counted = evaluate::has_references(test);
  std::optional<ErrorTable> table;
  if (counted || o.dev) table.emplace(o, length, session);
  double weight = o.weight.value_or(weights.front());
  if (o.dev) {
    score_lists(dev, *o.dev, opened, scoring, session);
    std::uint64_t fewest = UINT64_MAX;
    for (const double w : weights) {
      const std::uint64_t errors = table->at(*o.dev, "dev", w, dev).errors();
      if (errors >= fewest) continue;
      fewest = errors;
      weight = w;
    }
  }
  score_lists(test, o.file, opened, scoring, session);
  if (counted) {
    table->at(o.file, "first-pass", 0, test);
    table->at(o.file, "rescored", weight, test);
    table->oracle(o.file, test);
  }
  if (table) table->finish();
  if (o.output) {
    write_chosen(*o.output, test, weight, length);
  } else if (!counted) {
    print_chosen(test, weight, length,
                 commands::ResultFormat::of(opened.model->precision(), o.open.digits),
                 o.open.common, session);
  }
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_rescore(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("rescore", "chooses hypotheses from n-best lists; word error rates");
  c.example("lm-score rescore bert-base-uncased/ test.tsv --dev dev.tsv",
            "chooses the weight on dev, then rescores test");
  c.example("lm-score rescore gpt2/ test.json --weight 0.3 -o chosen.tsv",
            "ESPnet's lists with a fixed weight");
  c.example("lm-score rescore gpt2/ new.tsv --weight 0.3",
            "lists without references: prints the chosen hypothesis of each");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.argument("FILE", o->file,
             "n-best lists: TSV of utterance, score, hypothesis and (optional) reference, or JSON "
             "of ESPnet or mlm-scoring; - is standard input");
  commands::add_scoring(
      c, o->scoring,
      {.policy =
           "what to do with a text that is too long: error, chunk, slide:STRIDE, first or last "
           "[error]"});
  c.option("--dev", "FILE", o->dev, "n-best lists with references, to choose the weight");
  c.option("--weight", "X", o->weight, cli::AllowedRange{0, 1e6},
           "weight of the language model's score");
  c.option("--weights", "LIST", o->weights, "weights to try on --dev [0,0.05,…,1]");
  c.option("--length-normalization", "HOW", o->length_normalization,
           "divides the language model's score by ((5 + tokens) / 6)^ALPHA (gnmt:ALPHA) or "
           "tokens^ALPHA (power:ALPHA)");
  c.option("-o,--output", "FILE", o->output, "writes the chosen hypotheses: utterance, tab, text");
  commands::add_digits(c, o->open.digits);
  add_table(c, o->open.common);
  c.writes({"output"});
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::lm_score
