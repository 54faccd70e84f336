// lm-score pairs: accuracy on minimal pairs.
#include <deque>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "aggregates.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/thread/parallel.hpp"
#include "cli/input_lines.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
#include "commands/open_model.hpp"
#include "commands/scoring.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::ScoringOptions scoring;
  std::vector<std::string> files;
  std::optional<std::string> shard;
  std::optional<std::string> against;
  std::optional<evaluate::ScoreKind> against_kind;
  bool per_pair = false;
};

struct ScoredPair {
  evaluate::MinimalPair pair;
  double good = 0;
  double bad = 0;
  bool right() const { return good > bad; }
};

/// Pairs wait here for their two scores; `sink` gets them in their order.
class PairScorer {
 public:
  PairScorer(const commands::OpenedModel& opened, const commands::Scoring& scoring,
             std::function<void(ScoredPair&&)> sink)
      : opened_(opened),
        scoring_(scoring),
        sink_(std::move(sink)),
        scorer_(*opened.model, scoring.options,
                [this](evaluate::ScoredSentence&& s) { take(s.score); }) {}

  /// Throws InputError for a sentence that is too long.
  void check(const evaluate::MinimalPair& pair) const {
    for (const std::string* text : {&pair.good, &pair.bad}) {
      if (const auto problem = scorer_.length_problem(encode(*text))) throw InputError(*problem);
    }
  }
  /// For a pair that check() accepts.
  void add(const evaluate::MinimalPair& pair) {
    waiting_.push_back(pair);
    scorer_.add(0, encode(pair.good));
    scorer_.add(0, encode(pair.bad));
  }
  void flush() { scorer_.flush(); }
  const evaluate::ShortenedTexts& shortened() const { return scorer_.shortened(); }

 private:
  evaluate::Sentence encode(const std::string& text) const {
    return encode_sentence(*opened_.tokenizer, text, scoring_.sentence);
  }

  /// Scores come in the order of the sentences: good, bad, good, bad …
  void take(double score) {
    if (!good_) {
      good_ = score;
      return;
    }
    sink_({std::move(waiting_.front()), *good_, score});
    waiting_.pop_front();
    good_.reset();
  }

  const commands::OpenedModel& opened_;
  const commands::Scoring& scoring_;
  std::deque<evaluate::MinimalPair> waiting_;
  std::optional<double> good_;
  std::function<void(ScoredPair&&)> sink_;
  evaluate::TextScorer scorer_;
};

/// A model that is open, and how it scores.
struct Scored {
  commands::OpenedModel opened;
  commands::Scoring scoring;
};

Scored open(const Options& o, const std::string& folder,
            const std::optional<evaluate::ScoreKind>& kind, cli::Session& session) {
  commands::OpenModelOptions options = o.open;
  options.model = folder;
  commands::ScoringOptions how = o.scoring;
  how.kind = kind;
  commands::OpenedModel opened = commands::open_model(options, folder, true, session);
  commands::Scoring scoring = commands::make_scoring(how, options, opened, session);
  return {std::move(opened), std::move(scoring)};
}

/// Gives each pair of the files to every scorer; kInput if some were left out. Fills `part` unless
/// it is nullptr.
cli::ExitCode score_files(const Options& o, const std::vector<PairScorer*>& scorers,
                          cli::Session& session, commands::InputPart* part = nullptr) {
  RepairedLines surrogates;
  const auto add = [&](const commands::FileLine& line) {
    const evaluate::MinimalPair pair = evaluate::parse_minimal_pair(line.text);
    surrogates.add_line(pair.lone_surrogates);
    for (const PairScorer* scorer : scorers) scorer->check(pair);
    for (PairScorer* scorer : scorers) scorer->add(pair);
  };
  const auto bad = o.scoring.policy == "skip" ? cli::BadLines::kSkip : cli::BadLines::kError;
  const cli::ExitCode code = commands::each_line_of(o.files, o.shard, add, session, bad, part);
  for (PairScorer* scorer : scorers) scorer->flush();
  session.clear_progress();
  for (const PairScorer* scorer : scorers) commands::note_shortened(scorer->shortened(), session);
  cli::note_surrogates(surrogates, input_name(o.files.front()), session);
  return code;
}

cli::ExitCode tell_accuracy(const Options& o, const Scored& scored, cli::Session& session) {
  evaluate::PairTally tally;
  PairScorer scorer(scored.opened, scored.scoring,
                    [&](ScoredPair&& p) { tally.add(p.pair, p.right()); });
  commands::InputPart part;
  const cli::ExitCode code = score_files(o, {&scorer}, session, &part);
  print_pairs(tally,
              with_shard(commands::provenance_json(scored.scoring, scored.opened), o.shard,
                         scored.opened, part),
              o.open.common, session);
  return code;
}

cli::ExitCode print_each(const Options& o, const Scored& scored, cli::Session& session) {
  const auto number = commands::ResultFormat::of(scored.opened.model->precision(), o.open.digits);
  cli::Table table(session, o.open.common,
                   {"paradigm", "good", "bad", "difference", "correct", "sentence_good"});
  PairScorer scorer(scored.opened, scored.scoring, [&](ScoredPair&& p) {
    table.row({p.pair.uid, number.cell(p.good), number.cell(p.bad), number.cell(p.good - p.bad),
               std::uint64_t{p.right()}, p.pair.good});
  });
  const cli::ExitCode code = score_files(o, {&scorer}, session);
  table.finish();
  return code;
}

cli::ExitCode compare(const Options& o, const Scored& first, const Scored& second,
                      cli::Session& session) {
  evaluate::PairComparison comparison;
  // Each model has its own batches, so one of them is ahead.
  std::deque<bool> ahead_first;
  std::deque<std::pair<evaluate::MinimalPair, bool>> ahead_second;
  PairScorer scorer(first.opened, first.scoring, [&](ScoredPair&& p) {
    if (ahead_second.empty()) {
      ahead_first.push_back(p.right());
      return;
    }
    comparison.add(p.pair, p.right(), ahead_second.front().second);
    ahead_second.pop_front();
  });
  PairScorer other(second.opened, second.scoring, [&](ScoredPair&& p) {
    if (ahead_first.empty()) {
      ahead_second.emplace_back(std::move(p.pair), p.right());
      return;
    }
    comparison.add(p.pair, ahead_first.front(), p.right());
    ahead_first.pop_front();
  });
  const cli::ExitCode code = score_files(o, {&scorer, &other}, session);
  print_comparison(comparison, commands::provenance_json(first.scoring, first.opened),
                   commands::provenance_json(second.scoring, second.opened), o.open.common,
                   session);
  return code;
}

cli::ExitCode run(Options& o, cli::Session& session) {
  cli::CommonOptions& common = o.open.common;
  session.configure(common);
  if (o.against_kind && !o.against) throw UsageError("--against-kind needs --against");
  if (o.against && o.shard)
    throw UsageError("--against cannot be combined with --shard: merge adds no comparisons");
  if (o.against && o.per_pair)
    throw UsageError("--against and --per-pair cannot be combined: print the pairs of each model");
  if (o.per_pair && o.shard)
    throw UsageError(
        "--per-pair and --shard cannot be combined: the parts have no header of their own");
  if (o.open.digits && !o.per_pair) throw UsageError("--digits needs --per-pair");
  commands::print_part_as_json(common, o.shard);
  const Scored scored = open(o, o.open.model, o.scoring.kind, session);
  if (o.per_pair) return print_each(o, scored, session);
  if (!o.against) return tell_accuracy(o, scored, session);
  const auto kind = o.against_kind ? o.against_kind : o.scoring.kind;
  return compare(o, scored, open(o, *o.against, kind, session), session);
}

}  // namespace

void declare_pairs(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "pairs", "accuracy on minimal pairs: how often the good sentence scores higher");
  c.example("lm-score pairs bert-base-uncased/ blimp/*.jsonl",
            "accuracy by paradigm, by field, and over all pairs");
  c.example("lm-score pairs gpt2/ blimp/*.jsonl --shard 1/8 > 1.jsonl",
            "one part of eight, to be combined by lm-score merge");
  c.example("lm-score pairs gpt2/ blimp/*.jsonl --against gpt2-medium/",
            "two models on the same pairs, with a paired test of each paradigm");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.arguments("FILE", o->files,
              "JSON lines with BLiMP's keys (sentence_good, sentence_bad, UID, field, "
              "linguistics_term) or with good, bad, uid; - is standard input");
  commands::add_scoring(c, o->scoring);
  commands::add_file_shard(c, o->shard);
  commands::add_digits(c, o->open.digits);
  c.option("--against", "MODEL", o->against,
           "a second model, opened with the same options: prints both accuracies, the pairs that "
           "only one of them has right, and the p of McNemar's exact test");
  c.choice("--against-kind", o->against_kind, evaluate::kind_names(),
           "kind of score of the second model [that of --kind]");
  c.flag("--per-pair", o->per_pair,
         "prints the scores of each pair and whether the good one is higher");
  add_table(c, o->open.common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::lm_score
