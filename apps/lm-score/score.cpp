// lm-score score: a number for each line.
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "commands/sequences.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/score/word_scores.hpp"
#include "evaluate/states/cross_encoder.hpp"

namespace masque::lm_score {

namespace {

// Rows of words and of regions, for `score --per-word`.

struct WordOptions {
  bool per_word = false;
  std::optional<evaluate::WordUnit> words;  ///< none: by white space
  bool space_correction = false;
  bool regions = false;
};

/// The words of lines whose scores are on their way.
class WordRows {
 public:
  /// Makes `scoring` score what a correction needs, and says what is printed. Throws UsageError for
  /// options that do not go together or with the kind, InputError for the tokenizer.
  WordRows(const WordOptions& options, commands::Scoring& scoring,
           const commands::OpenedModel& opened, cli::Session& session);

  /// The text that a line has. Throws InputError (message only) for a line without the columns of
  /// regions.
  std::string_view text_of(std::string_view line) const;
  /// Takes the words of a line, in the order of scoring. Throws InputError (message only) for
  /// labels that do not fit.
  void add(std::string_view line, const evaluate::Sentence& sentence);

  std::vector<std::string> columns() const;
  /// Rows of the next line, or members of its JSON object.
  void each_row(const evaluate::ScoredSentence& scored, const commands::ResultFormat& number,
                const std::function<void(const std::vector<cli::Cell>&)>& use);
  void members(const evaluate::ScoredSentence& scored, const commands::ResultFormat& number,
               JsonWriter& json);

 private:
  struct Line {
    std::string text;
    std::vector<evaluate::Region> rows;  ///< words have no label
  };

  Line next();
  std::string_view part(const Line& line, const evaluate::WordTokens& row) const;
  std::optional<double> score(const evaluate::ScoredSentence& scored,
                              const evaluate::WordTokens& row) const;

  WordOptions options_;
  std::optional<evaluate::SpaceCorrection> correction_;
  std::deque<Line> lines_;
};

/// Why the kind and the words cannot be corrected; nothing if they can.
void check_correction(const WordOptions& options, const evaluate::ScoreOptions& score,
                      const model::Design& design) {
  if (score.kind != evaluate::ScoreKind::kCausal || design.streams == model::Streams::kTwo) {
    throw UsageError(
        fmt::format("--space-correction is only for --kind causal with models of one stream, found "
                    "a {} model and --kind {}",
                    design.family, evaluate::kind_name(score.kind)));
  }
  if (options.words == evaluate::WordUnit::kTokenizer)
    throw UsageError("--space-correction cannot be combined with --words tokenizer");
}

/// --per-word, --words, --space-correction, --regions.
void add_word_options(cli::Command& command, WordOptions& options) {
  command.flag("--per-word", options.per_word,
               "one row per word; with --json, lists of words and their log-probabilities");
  command.choice("--words", options.words, evaluate::word_unit_names(),
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
        {"words", std::string(name_in(evaluate::word_unit_names(), *options.words))});
  if (options.regions && options.words == evaluate::WordUnit::kTokenizer)
    throw UsageError("--regions cannot be combined with --words tokenizer");
  if (options.space_correction) {
    check_correction(options, scoring.options, opened.model->design());
    const auto problem = input_error_message([&] { correction_.emplace(*opened.tokenizer); });
    if (problem) throw InputError(opened.path, *problem);
    scoring.options.sets = correction_->sets();
    scoring.given.push_back({"space_correction", "true", false});
  }
  const bool first = scoring.options.kind != evaluate::ScoreKind::kCausal ||
                     opened.model->design().streams == model::Streams::kTwo ||
                     encode_sentence(*opened.tokenizer, "a", scoring.sentence).prefix > 0;
  session.note(fmt::format(
      "words {}; the first token is {}scored",
      options.words == evaluate::WordUnit::kTokenizer ? "of the tokenizer" : "between white space",
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

void WordRows::add(std::string_view line, const evaluate::Sentence& sentence) {
  Line kept{std::string(text_of(line)), {}};
  const std::vector<evaluate::WordTokens> words =
      words_of(sentence, kept.text, options_.words.value_or(evaluate::WordUnit::kSpace));
  if (options_.regions) {
    kept.rows = regions_of(words, line.substr(kept.text.size() + 1));
  } else {
    for (const evaluate::WordTokens& word : words) kept.rows.push_back({{}, word});
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

std::string_view WordRows::part(const Line& line, const evaluate::WordTokens& row) const {
  return std::string_view(line.text).substr(row.place.begin, row.place.end - row.place.begin);
}

std::optional<double> WordRows::score(const evaluate::ScoredSentence& scored,
                                      const evaluate::WordTokens& row) const {
  return word_score(scored, row, correction_ ? &*correction_ : nullptr);
}

void WordRows::each_row(const evaluate::ScoredSentence& scored,
                        const commands::ResultFormat& number,
                        const std::function<void(const std::vector<cli::Cell>&)>& use) {
  const Line line = next();
  std::uint64_t at = 0;
  for (const evaluate::Region& row : line.rows) {
    std::vector<cli::Cell> cells{scored.id, at++};
    if (options_.regions) cells.emplace_back(row.label);
    cells.emplace_back(part(line, row.tokens));
    cells.emplace_back(row.tokens.end - row.tokens.begin);
    cells.push_back(number.cell(score(scored, row.tokens)));
    use(cells);
  }
}

void WordRows::members(const evaluate::ScoredSentence& scored, const commands::ResultFormat& number,
                       JsonWriter& json) {
  const Line line = next();
  const auto list = [&](const char* name, const auto& add) {
    json.key(fmt::format("{}_{}", options_.regions ? "region" : "word", name)).begin_array();
    for (const evaluate::Region& row : line.rows) add(row);
    json.end_array();
  };
  if (options_.regions) list("labels", [&](const evaluate::Region& row) { json.value(row.label); });
  list("texts", [&](const evaluate::Region& row) { json.value(part(line, row.tokens)); });
  // In code points, as a text of Python counts.
  std::size_t bytes = 0;
  std::size_t characters = 0;
  const auto count_to = [&](std::size_t place) {
    if (place < bytes) bytes = characters = 0;  // words seldom overlap
    characters += count_code_points(std::string_view(line.text).substr(bytes, place - bytes));
    bytes = place;
    return characters;
  };
  list("spans", [&](const evaluate::Region& row) {
    const std::size_t begin = count_to(row.tokens.place.begin);
    json.begin_array().value(begin).value(count_to(row.tokens.place.end)).end_array();
  });
  list("tokens",
       [&](const evaluate::Region& row) { json.value(row.tokens.end - row.tokens.begin); });
  list("log_probabilities", [&](const evaluate::Region& row) {
    json.raw(number.cell(score(scored, row.tokens)).json());
  });
}

// The command.

struct Options {
  commands::OpenModelOptions open;
  commands::ScoringOptions scoring;
  commands::StreamOptions stream;
  bool per_token = false;
  bool pairs = false;
  std::optional<kernel::Activation> activation;
  WordOptions word;
};

constexpr std::array<std::pair<std::string_view, kernel::Activation>, 2> kPairActivations{
    {{"sigmoid", kernel::Activation::kSigmoid}, {"none", kernel::Activation::kNone}}};

/// Prints sentences as they are finished.
class ScorePrinter {
 public:
  ScorePrinter(const Options& options, const commands::OpenedModel& opened,
               const commands::Scoring& scoring, WordRows* words, cli::Session& session)
      : options_(options),
        words_(words),
        number_(commands::ResultFormat::of(opened.model->precision(), options.open.digits)),
        provenance_(commands::provenance_json(scoring, opened)),
        bound_(scoring.options.kind == evaluate::ScoreKind::kMdlm),
        session_(session) {}

  void header() {
    if (!commands::has_header(options_.open.common, options_.stream)) return;
    std::vector<std::string> columns{"id", "score", "tokens"};
    if (words_ != nullptr) {
      columns = words_->columns();
    } else if (options_.per_token) {
      columns = {"id", "token", "piece", "log_probability"};
    } else if (bound_) {
      columns.emplace_back("standard_error");
    }
    session_.print(cli::header_line(session_, options_.open.common, columns));
  }

  /// Scores become f of them from now on.
  void activate(kernel::Activation f) { activation_ = f; }

  void print(evaluate::ScoredSentence s) {
    s.score = evaluate::activated(activation_, s.score);
    if (options_.open.common.json) {
      print_json(s);
    } else if (words_ != nullptr) {
      words_->each_row(s, number_, [&](const std::vector<cli::Cell>& cells) { print_row(cells); });
    } else if (options_.per_token) {
      print_tokens(s);
    } else {
      std::vector<cli::Cell> cells{s.id, number_.cell(s.score), s.tokens};
      if (bound_) cells.push_back(number_.cell(error_of(s)));
      print_row(cells);
    }
    if (session_.stdout_is_terminal()) session_.flush();
  }

 private:
  static double error_of(const evaluate::ScoredSentence& s) { return std::sqrt(*s.score_variance); }

  void print_row(const std::vector<cli::Cell>& cells) {
    session_.print(cli::row_line(session_, options_.open.common, cells));
  }

  const std::string& piece(const evaluate::ScoredSentence& s, std::size_t i) const {
    return s.sentence.pieces[static_cast<std::size_t>(s.sentence.prefix) + i];
  }

  void print_tokens(const evaluate::ScoredSentence& s) {
    for (std::size_t i = 0; i < s.log_probabilities.size(); ++i) {
      const std::optional<double>& value = s.log_probabilities[i];
      print_row({s.id, static_cast<std::uint64_t>(i), piece(s, i), number_.cell(value)});
    }
  }

  void print_json(const evaluate::ScoredSentence& s) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("id", s.id).raw_member("score", number_.json(s.score));
    json.member("tokens", s.tokens);
    if (bound_) json.raw_member("standard_error", number_.json(error_of(s)));
    json.raw(provenance_);
    if (options_.per_token) {
      json.key("pieces").begin_array();
      for (std::size_t i = 0; i < s.log_probabilities.size(); ++i) json.value(piece(s, i));
      json.end_array().key("log_probabilities").begin_array();
      for (const std::optional<double>& value : s.log_probabilities)
        json.raw(number_.cell(value).json());
      json.end_array();
    }
    if (words_ != nullptr) words_->members(s, number_, json);
    json.end_object();
    session_.print(out + "\n");
  }

  const Options& options_;
  WordRows* words_;  ///< nullptr: no words are printed
  commands::ResultFormat number_;
  std::string provenance_;
  bool bound_;  ///< of draws, with an error
  kernel::Activation activation_ = kernel::Activation::kNone;
  cli::Session& session_;
};

/// The scores of pairs, and how their lines become sentences. Throws UsageError where the kind is
/// of one text.
kernel::Activation open_pairs(const Options& o, const commands::OpenedModel& opened,
                              commands::Scoring& scoring, cli::Session& session) {
  if (scoring.options.kind != evaluate::ScoreKind::kMaskless) {
    throw UsageError(
        fmt::format("--pairs needs an encoder–decoder or a model with a regression head, found "
                    "--kind {}",
                    evaluate::kind_name(scoring.options.kind)));
  }
  if (!evaluate::refuses_long(scoring.options.policy))
    throw UsageError("--pairs: only with --policy error or skip");
  const kernel::Activation activation =
      o.activation ? *o.activation : evaluate::read_pair_activation(opened.path);
  const bool sigmoid = activation == kernel::Activation::kSigmoid;
  const bool none = activation == kernel::Activation::kNone;
  session.note(fmt::format("pairs of texts; activation {}", sigmoid ? "sigmoid"
                                                            : none  ? "none"
                                                                    : "of the folder"));
  scoring.given.push_back({"pairs", "true", false});
  scoring.given.push_back({"activation", sigmoid ? "sigmoid" : none ? "none" : "folder"});
  return activation;
}

/// Prepares the scores of targets given their sources. Throws UsageError for options of other
/// pairs.
void open_targets(const Options& o, commands::Scoring& scoring, cli::Session& session) {
  if (o.activation)
    throw UsageError("--activation applies to a regression head, not to an encoder–decoder");
  commands::check_targets(o.scoring, scoring);
  session.note("pairs of a source and its target, of which each token is scored");
  scoring.given.push_back({"pairs", "true", false});
}

/// A line of two texts for the model. Throws InputError (message only) for another one.
evaluate::Sentence pair_of(std::string_view line, const commands::OpenedModel& opened,
                           const evaluate::SentenceOptions& options) {
  if (opened.model->encoder() != nullptr)
    return commands::encode_target_line(line, opened, options);
  const auto [first, second] = commands::pair_columns(line);
  return encode_pair_sentence(*opened.tokenizer, first, second, options);
}

void check_options(const Options& o) {
  if (o.activation && !o.pairs) throw UsageError("--activation needs --pairs");
  if (o.pairs && o.word.per_word) throw UsageError("--pairs and --per-word cannot be combined");
  if (o.word.per_word) {
    if (o.per_token) throw UsageError("--per-token and --per-word cannot be combined");
    return;
  }
  for (const auto& [given, name] : {std::pair(o.word.words.has_value(), "--words"),
                                    {o.word.space_correction, "--space-correction"},
                                    {o.word.regions, "--regions"}}) {
    if (given) throw UsageError(fmt::format("{} needs --per-word", name));
  }
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  check_options(o);
  session.configure(o.open.common);
  cli::need_stream(command);
  commands::OpenModelOptions open = o.open;
  open.decoder = o.pairs;
  const commands::OpenedModel opened = commands::open_model(open, open.model, true, session);
  commands::Scoring scoring = commands::make_scoring(o.scoring, o.open, opened, session);
  if (scoring.options.kind == evaluate::ScoreKind::kMaskless && (o.per_token || o.word.per_word)) {
    throw UsageError(
        fmt::format("{} cannot be combined with --kind maskless, which gives one number per text",
                    o.per_token ? "--per-token" : "--per-word"));
  }
  std::optional<kernel::Activation> activation;
  const bool targets = opened.model->encoder() != nullptr;
  if (targets) open_targets(o, scoring, session);
  if (o.pairs && !targets) activation = open_pairs(o, opened, scoring, session);
  std::optional<WordRows> words;
  if (o.word.per_word) words.emplace(o.word, scoring, opened, session);
  ScorePrinter printer(o, opened, scoring, words ? &*words : nullptr, session);
  if (activation) printer.activate(*activation);
  evaluate::TextScorer scorer(*opened.model, scoring.options,
                              [&](evaluate::ScoredSentence&& s) { printer.print(std::move(s)); });
  printer.header();
  commands::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) -> std::optional<std::string> {
    std::string_view text = line;
    std::optional<std::string> problem;
    if (words) problem = input_error_message([&] { text = words->text_of(line); });
    if (problem) return problem;
    evaluate::Sentence sentence;
    if (o.pairs) {
      problem = input_error_message([&] { sentence = pair_of(line, opened, scoring.sentence); });
      if (problem) return problem;
    } else {
      sentence = encode_sentence(*opened.tokenizer, text, scoring.sentence);
    }
    problem = scorer.length_problem(sentence);
    if (!problem && words) problem = input_error_message([&] { words->add(line, sentence); });
    if (problem) return problem;
    scorer.add(id, std::move(sentence));
    return std::nullopt;
  };
  work.flush = [&] { scorer.flush(); };
  const cli::ExitCode code =
      commands::run_lines(commands::scored_stream(o.stream, scoring), command, work, session);
  commands::note_shortened(scorer.shortened(), session);
  return code;
}

}  // namespace

void declare_score(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("score", "log-probability of each line of standard input");
  c.example("lm-score score bert-base-uncased/ < text",
            "pseudo-log-likelihoods: line number, score in nats, number of tokens");
  c.example("lm-score score bert-base-uncased/ --kind pll-word-l2r --json --per-token < text",
            "one number for each token");
  c.example(
      "lm-score score bert-base-uncased/ --kind tta --kv input --query position --mask tta "
      "< text",
      "BERT run as a T-TA, in one pass per text");
  c.example("lm-score score gpt2/ --per-word --space-correction < text",
            "log-probabilities of words, with the probability that each word ends");
  c.example("lm-score score mdlm/ --kind mdlm --draws 128 < text",
            "masked diffusion: a lower bound on each log-likelihood, and its standard error");
  c.example("lm-score score student/ --kind maskless < text",
            "estimated scores in one pass, from a model trained with lm-train classify");
  c.example("lm-score score cross-encoder/ --pairs < pairs",
            "how well the second text of each line fits the first");
  c.example(
      "lm-score score t5-small/ --pairs --per-token < pairs",
      "an encoder–decoder: log-probabilities of the second text of each line, given the first");
  c.example("lm-score score gpt2/ --policy slide:512 < text",
            "reads long lines in overlapping windows");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  commands::add_scoring(c, o->scoring);
  c.flag("--per-token", o->per_token,
         "one row per token; with --json, lists of tokens and their log-probabilities");
  c.flag("--pairs", o->pairs,
         "each line is two texts, separated by a tab: a source and the target that an "
         "encoder–decoder scores, or what a model with a regression head (a cross-encoder) reads "
         "at once");
  c.choice("--activation", o->activation, NameTable<kernel::Activation>(kPairActivations),
           "with --pairs: what becomes of the number [the folder's; else sigmoid, but none for a "
           "model of regression]");
  add_word_options(c, o->word);
  commands::add_digits(c, o->open.digits);
  commands::add_stream(c, o->stream, {.policy = false});
  c.flag("--json", o->open.common.json, "prints one JSON object per line instead of TSV");
  cli::add_csv(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
