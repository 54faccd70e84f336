// droptoken mlm: selected tokens are hidden, replaced or kept, and become labels.
#include "records/mlm.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/corruption_options.hpp"
#include "commands/similar_tokens.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  commands::MlmChoice mlm;
  std::string replace = "mask";
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  records::MlmOptions mlm = commands::mlm_of(o.mlm, o.stream.common.seed);
  if (const auto file = commands::similar_file_of(o.replace))
    mlm.similar = commands::read_similar(*file, tokens.names(), o.stream.common.threads, session);
  const auto corruption = make_mlm(mlm, tokens.table());
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_mlm(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("mlm", "masks tokens for masked language modelling, and adds labels");
  c.example("droptoken mlm --tokenizer bert-base/ --special < text > records",
            "masks as BERT does");
  c.example("droptoken mlm --tokenizer bert-base/ --unit word --choice span --rate 0.4:0.8",
            "spans of whole words, with a rate drawn for each record");
  c.example(
      "droptoken mlm --binary u16 --mask-token 103 --vocab-size 30522 --input train.bin -o m.bin",
      "plain ids; the labels are in m.bin.labels");
  commands::add_mlm(c, o->mlm);
  commands::add_replace(c, o->replace);
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  add_binary(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
