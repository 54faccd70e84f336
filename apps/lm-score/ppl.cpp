// lm-score ppl: perplexity of a corpus.
#include <memory>

#include "aggregates.hpp"
#include "commands.hpp"
#include "engine/engine.hpp"
#include "engine/number_format.hpp"
#include "engine/scoring.hpp"
#include "engine/text_stream.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  engine::EngineOptions engine;
  engine::ScoringOptions scoring;
  engine::StreamOptions stream;
};

cli::ExitCode run(Options& o, const cli::Command& command, cli::Session& session) {
  cli::CommonOptions& common = o.engine.common;
  session.configure(common);
  common.json = common.json || o.stream.shard;
  cli::need_stream(command);
  const engine::Engine engine = engine::open_engine(o.engine, o.engine.model, true, session);
  const engine::Scoring scoring = engine::make_scoring(o.scoring, o.engine, engine, session);
  probe::Perplexity sum;
  probe::TextScorer scorer(*engine.model, scoring.options,
                           [&](probe::ScoredSentence&& s) { sum.add(s); });
  engine::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) {
    probe::Sentence sentence = encode_sentence(*engine.tokenizer, line, scoring.sentence);
    if (const auto problem = scorer.length_problem(sentence))
      engine::refuse_line(o.stream, id, *problem);
    scorer.add(id, std::move(sentence));
  };
  work.flush = [&] { scorer.flush(); };
  const cli::ExitCode code = engine::run_lines(o.stream, command, work, session);
  print_ppl(sum, engine::provenance_json(scoring, engine),
            engine::NumberFormat::of(engine.model->precision(), o.engine.digits), common, session);
  return code;
}

}  // namespace

void declare_ppl(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("ppl", "perplexity of the text on standard input");
  c.example("lm-score ppl gpt2/ --policy slide:512 < text", "per token, and bits per byte");
  c.example("lm-score ppl bert-base-uncased/ < text", "the pseudo-perplexity of a masked model");
  engine::add_engine(c, o->engine);
  engine::add_batch_tokens(c, o->engine);
  engine::add_scoring(c, o->scoring);
  engine::add_digits(c, o->engine.digits);
  engine::add_stream(c, o->stream);
  c.flag("--json", o->engine.common.json,
         "one JSON object, with what merge needs; --shard prints it, too");
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
