// attn-probe ablate: how much of the loss rests on the attention of each layer.
#include <cmath>
#include <memory>

#include "commands.hpp"
#include "engine/number_format.hpp"
#include "engine/scoring.hpp"
#include "engine/text_stream.hpp"
#include "probe/ablation.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  engine::EngineOptions engine;
  engine::ScoringOptions scoring;
  engine::StreamOptions stream;
};

const char* name_of(model::AttentionOverride attention) {
  switch (attention) {
    case model::AttentionOverride::kIntact: return "intact";
    case model::AttentionOverride::kZero: return "zero";
    case model::AttentionOverride::kMean: break;
  }
  return "mean";
}

cli::ExitCode run(Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.engine.common);
  cli::need_stream(command);
  const engine::Engine engine = engine::open_engine(o.engine, o.engine.model, true, session);
  const engine::Scoring scoring = engine::make_scoring(o.scoring, o.engine, engine, session);
  probe::Ablation ablation(*engine.model, scoring.options);
  engine::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) {
    const probe::Sentence sentence = encode_sentence(*engine.tokenizer, line, scoring.sentence);
    if (const auto problem = ablation.length_problem(sentence))
      engine::refuse_line(o.stream, id, *problem);
    ablation.add(id, sentence);
  };
  work.flush = [&] { ablation.flush(); };
  const cli::ExitCode code = engine::run_lines(o.stream, command, work, session);
  const auto format = engine::NumberFormat::of(engine.model->precision(), o.engine.digits);
  cli::Table table(session, o.engine.common,
                   {"layer", "attention", "lines", "tokens", "nll", "nll_se", "gap", "gap_se"});
  for (const probe::AblationRow& row : ablation.rows()) {
    table.row({row.layer == 0 ? std::string("all") : std::to_string(row.layer),
               name_of(row.attention), row.loss.lines,
               static_cast<std::uint64_t>(std::llround(row.loss.counts)),
               format.cell(row.loss.mean()), format.cell(row.loss.standard_error()),
               format.cell(row.gap.mean()), format.cell(row.gap.standard_error())});
  }
  table.finish();
  return code;
}

}  // namespace

void declare_ablate(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "ablate", "the loss with each layer's attention taken out or levelled, and intact");
  c.example("attn-probe ablate bert-base-uncased/ < text",
            "pseudo-log-likelihood; a small gap is a layer that predicts from its residual");
  engine::add_engine(c, o->engine);
  engine::add_batch_tokens(c, o->engine);
  engine::add_scoring(c, o->scoring);
  engine::add_digits(c, o->engine.digits);
  engine::add_stream(c, o->stream);
  cli::add_table(c, o->engine.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
