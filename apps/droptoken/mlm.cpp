// droptoken mlm: selected tokens are hidden, replaced or kept, and become labels.
#include "records/mlm.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/selection_options.hpp"
#include "commands/similar_tokens.hpp"
#include "stream.hpp"

namespace masque::droptoken {

using commands::add_selection;
using commands::parse_shares;
using commands::selection_of;
using commands::SelectionChoice;

namespace {

struct Options {
  StreamOptions stream;
  SelectionChoice selection;
  std::string split = "0.8:0.1:0.1";
  std::string replace = "mask";
  std::uint64_t draws = 0;
  bool fixed_selection = false;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  const std::vector<double> split = parse_shares("split", o.split, 3, 3);
  records::MlmOptions mlm{.selection = selection_of(o.selection, o.stream.common.seed),
                          .mask = split[0],
                          .keep = split[1],
                          .random = split[2],
                          .draws = o.draws,
                          .fixed_selection = o.fixed_selection};
  if (o.replace.starts_with("similar:")) {
    mlm.similar = commands::read_similar(o.replace.substr(8), tokens.names(),
                                         o.stream.common.threads, session);
  } else if (o.replace != "mask") {
    throw UsageError("--replace: expected mask or similar:FILE");
  }
  const auto corruption = make_mlm(mlm, tokens.table());
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_mlm(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("mlm", "masked language modelling: [MASK], random, kept; labels");
  c.example("droptoken mlm --tokenizer bert-base/ --special < text > records", "as BERT");
  c.example("droptoken mlm --tokenizer bert-base/ --unit word --choice span --rate 0.4:0.8",
            "spans of whole words, another rate for each record");
  c.example(
      "droptoken mlm --binary u16 --mask-token 103 --vocab-size 30522 --input train.bin -o m.bin",
      "plain ids, labels in m.bin.labels");
  add_selection(c, o->selection);
  c.option("--split", "M:K:R", o->split, "shares of [MASK], kept and random among the selected");
  c.option("--replace", "HOW", o->replace,
           "mask, or similar:FILE (MacBERT): a list of tokens and their similar ones, or a "
           "checkpoint, whose "
           "embeddings say");
  c.option("--draws", "S", o->draws, "static masks: epochs e and e + S are alike; 0: all differ");
  c.flag("--fixed-selection", o->fixed_selection,
         "the same positions in all epochs, replaced anew in each");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  add_binary(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
