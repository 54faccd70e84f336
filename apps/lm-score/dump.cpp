// lm-score dump: the numbers of a model as a file of tensors.
#include "probe/dump.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "commands.hpp"
#include "engine/engine.hpp"
#include "engine/files.hpp"
#include "engine/text_stream.hpp"
#include "probe/record_items.hpp"
#include "probe/sentence.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  engine::EngineOptions engine;
  engine::StreamOptions stream;
  std::string what = "hidden_states";
  std::string output;
  std::optional<std::string> records;
  bool no_special = false;
};

/// Refuses options that are about text.
void check_records(const Options& o) {
  if (o.no_special || o.stream.input.crlf || o.stream.input.invalid != cli::Invalid::kReplace) {
    throw UsageError(
        "--no-special, --invalid and --crlf are about text, expected none of them with --records");
  }
}

std::vector<probe::DumpItem> read_records(const Options& o, const model::Design& design) {
  std::vector<probe::DumpItem> items;
  probe::each_record_item({.path = *o.records,
                           .name = engine::name_of(*o.records),
                           .shard = o.stream.shard,
                           .first_record = o.stream.first_record,
                           .max_line = o.stream.input.max_line},
                          design,
                          [&](probe::DumpItem&& item) { items.push_back(std::move(item)); });
  return items;
}

std::vector<probe::DumpItem> read_lines(const Options& o, const engine::Engine& engine,
                                        const cli::Command& command, cli::ExitCode& code,
                                        cli::Session& session) {
  const Index longest = engine.model->design().max_position_embeddings;
  std::vector<probe::DumpItem> items;
  engine::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) {
    probe::Sentence sentence =
        probe::encode_sentence(*engine.tokenizer, line, {.special = !o.no_special});
    if (longest != 0 && sentence.size() > longest) {
      engine::refuse_line(o.stream, id,
                          fmt::format("{} tokens, expected at most {}", sentence.size(), longest));
    }
    if (sentence.size() == 0) engine::refuse_line(o.stream, id, "no tokens, expected some");
    items.push_back(
        {.number = id, .ids = std::move(sentence.ids), .segments = std::move(sentence.segments)});
  };
  work.flush = [] {};
  code = engine::run_lines(o.stream, command, work, session);
  return items;
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.engine.common);
  probe::DumpRequest request;
  probe::parse_dump_parts(o.what, request);
  if (o.output == "-") throw UsageError("-o: found '-', expected the name of a file");
  if (o.records) {
    check_records(o);
  } else {
    cli::need_stream(command);
  }
  const engine::Engine engine = engine::open_engine(o.engine, o.engine.model, !o.records, session);
  if (request.logits && engine.model->design().head.kind == model::HeadKind::kNone)
    throw InputError(o.engine.model, "the model has no head, expected one for --what logits");
  session.note(fmt::format("{}: {}", engine.path, engine.description()));
  cli::ExitCode code = cli::ExitCode::kDone;
  const std::vector<probe::DumpItem> items = o.records
                                                 ? read_records(o, engine.model->design())
                                                 : read_lines(o, engine, command, code, session);
  request.batch_tokens = o.engine.batch_tokens;
  request.metadata = {
      {"model", o.engine.model},
      {"precision", std::string(kernel::precision_name(engine.model->precision()))}};
  for (const engine::Given& g : engine.given) request.metadata.emplace_back(g.name, g.value);
  if (o.no_special) request.metadata.emplace_back("no_special", "true");
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
  c.option("--what", "LIST", o->what, "hidden_states, logits, attentions; separated by commas");
  c.option("-o,--output", "FILE", o->output, "the file to write", cli::Need::kRequired);
  c.option("--records", "FILE", o->records,
           "JSON lines with ids, and seg, pos and mask if they have them, instead of text; - is "
           "standard input");
  c.flag("--no-special", o->no_special, "text without the tokens of the tokenizer's template");
  engine::add_stream(c, o->stream);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
