// lm-score dump: the numbers of a model as a file of tensors.
#include "evaluate/score/dump.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/sequences.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions sequences;
  bool pairs = false;
  std::string what = "hidden_states";
  std::string output;
};

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  evaluate::DumpRequest request;
  evaluate::parse_dump_parts(o.what, request);
  if (o.output == "-") throw UsageError("-o: found '-', expected the name of a file");
  commands::check_sequences(o.sequences, command);
  commands::OpenModelOptions open = o.open;
  open.decoder = o.pairs;
  const commands::OpenedModel opened =
      commands::open_model(open, open.model, !o.sequences.records, session);
  if (o.pairs && opened.model->encoder() == nullptr) {
    throw UsageError(fmt::format("--pairs needs an encoder–decoder with its decoder, found {}",
                                 opened.description()));
  }
  const model::HeadKind head = opened.model->design().head.kind;
  if (request.logits && (head == model::HeadKind::kNone || head == model::HeadKind::kText))
    throw InputError(o.open.model, model::missing_head(opened.model->design()) +
                                       ", expected a head that scores tokens for --what logits");
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  cli::ExitCode code = cli::ExitCode::kDone;
  const std::vector<evaluate::Sequence> items =
      commands::read_sequences(o.sequences, opened, command, code, session);
  request.batch_tokens = o.open.batch_tokens;
  request.metadata = {
      {"model", o.open.model},
      {"precision", std::string(kernel::precision_name(opened.model->precision()))}};
  for (const commands::Given& g : opened.given) request.metadata.emplace_back(g.name, g.value);
  for (const commands::Given& g : commands::given_sequences(o.sequences))
    request.metadata.emplace_back(g.name, g.value);
  request.progress = session.progress("running");
  evaluate::dump(*opened.model, items, request, o.output);
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
      "reads token ids instead of text");
  c.example("lm-score dump t5-small/ --pairs --what attentions -o out.safetensors < pairs",
            "of an encoder–decoder: weights of the encoder, of the decoder, and between them");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.flag("--pairs", o->pairs, std::string(commands::kPairsHelp));
  c.option("--what", "LIST", o->what,
           "what to write, separated by commas: hidden_states, logits, attentions");
  c.option("-o,--output", "FILE", o->output, "the safetensors file to write", cli::Need::kRequired);
  commands::add_sequences(c, o->sequences);
  c.writes({"output"});
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
