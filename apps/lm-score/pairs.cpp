// lm-score pairs: accuracy on minimal pairs.
#include <deque>
#include <memory>

#include <fmt/format.h>

#include "aggregates.hpp"
#include "base/error.hpp"
#include "base/parallel.hpp"
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
};

/// Pairs wait here for their two scores.
class PairScorer {
 public:
  PairScorer(const commands::OpenedModel& opened, const commands::Scoring& scoring)
      : opened_(opened),
        scoring_(scoring),
        scorer_(*opened.model, scoring.options,
                [this](probe::ScoredSentence&& s) { take(s.score); }) {}

  /// Throws InputError for a line that is no pair, or a sentence that is too long.
  void add(std::string_view line) {
    const probe::MinimalPair pair = probe::parse_minimal_pair(line);
    probe::Sentence good = encode(pair.good);
    probe::Sentence bad = encode(pair.bad);
    waiting_.push_back(pair);
    scorer_.add(0, std::move(good));
    scorer_.add(0, std::move(bad));
  }
  void flush() { scorer_.flush(); }
  const probe::PairTally& tally() const { return tally_; }

 private:
  probe::Sentence encode(const std::string& text) const {
    probe::Sentence sentence = encode_sentence(*opened_.tokenizer, text, scoring_.sentence);
    if (const auto problem = scorer_.length_problem(sentence)) throw InputError(*problem);
    return sentence;
  }

  /// Scores come in the order of the sentences: good, bad, good, bad …
  void take(double score) {
    if (!good_) {
      good_ = score;
      return;
    }
    tally_.add(waiting_.front(), *good_, score);
    waiting_.pop_front();
    good_.reset();
  }

  const commands::OpenedModel& opened_;
  const commands::Scoring& scoring_;
  std::deque<probe::MinimalPair> waiting_;
  std::optional<double> good_;
  probe::PairTally tally_;
  probe::TextScorer scorer_;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  cli::CommonOptions& common = o.open.common;
  session.configure(common);
  common.json = common.json || o.shard;
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  const commands::Scoring scoring = commands::make_scoring(o.scoring, o.open, opened, session);
  PairScorer scorer(opened, scoring);
  const auto add = [&](const commands::FileLine& line) { scorer.add(line.text); };
  commands::each_line_of(o.files, o.shard, add, session);
  scorer.flush();
  session.clear_progress();
  print_pairs(scorer.tally(), commands::provenance_json(scoring, opened), common, session);
  return cli::ExitCode::kDone;
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
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.arguments("FILE", o->files,
              "JSON lines with BLiMP's keys (sentence_good, sentence_bad, UID, field, "
              "linguistics_term) or with good, bad, uid; - is standard input");
  commands::add_scoring(c, o->scoring);
  commands::add_file_shard(c, o->shard);
  add_table(c, o->open.common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::lm_score
