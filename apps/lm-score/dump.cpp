// lm-score dump: the numbers of a model as a file of tensors.
#include "probe/score/dump.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "commands.hpp"
#include "engine/engine.hpp"
#include "engine/sequences.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  engine::EngineOptions engine;
  engine::SequenceOptions sequences;
  std::string what = "hidden_states";
  std::string output;
};

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.engine.common);
  probe::DumpRequest request;
  probe::parse_dump_parts(o.what, request);
  if (o.output == "-") throw UsageError("-o: found '-', expected the name of a file");
  engine::check_sequences(o.sequences, command);
  const engine::Engine engine =
      engine::open_engine(o.engine, o.engine.model, !o.sequences.records, session);
  if (request.logits && engine.model->design().head.kind == model::HeadKind::kNone)
    throw InputError(o.engine.model, "the model has no head, expected one for --what logits");
  session.note(fmt::format("{}: {}", engine.path, engine.description()));
  cli::ExitCode code = cli::ExitCode::kDone;
  const std::vector<probe::Sequence> items =
      engine::read_sequences(o.sequences, engine, command, code, session);
  request.batch_tokens = o.engine.batch_tokens;
  request.metadata = {
      {"model", o.engine.model},
      {"precision", std::string(kernel::precision_name(engine.model->precision()))}};
  for (const engine::Given& g : engine.given) request.metadata.emplace_back(g.name, g.value);
  if (o.sequences.no_special) request.metadata.emplace_back("no_special", "true");
  request.progress = session.progress("running");
  probe::dump(*engine.model, items, request, o.output);
  session.clear_progress();
  return code;
}

}  // namespace

void declare_dump(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("dump", "hidden states, logits and attention weights as safetensors");
  c.example(
      "lm-score dump bert-base-uncased/ --what hidden_states,logits -o out.safetensors < text",
      "0.hidden_states, 0.logits, 1.hidden_states …");
  c.example(
      "lm-score dump bert-base-uncased/ --what attentions --records ids.jsonl -o "
      "out.safetensors",
      "of sequences of ids, used as they are");
  engine::add_engine(c, o->engine);
  engine::add_batch_tokens(c, o->engine);
  c.option("--what", "LIST", o->what, "hidden_states, logits, attentions; separated by commas");
  c.option("-o,--output", "FILE", o->output, "the file to write", cli::Need::kRequired);
  engine::add_sequences(c, o->sequences);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
