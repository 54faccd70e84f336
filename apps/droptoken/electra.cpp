// droptoken electra: selected tokens are replaced by a generator's.
#include "records/electra.hpp"

#include <memory>

#include "base/error.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/selection_options.hpp"
#include "commands/similar_tokens.hpp"
#include "stream.hpp"

namespace masque::droptoken {

using commands::add_selection;
using commands::selection_of;
using commands::SelectionChoice;

namespace {

struct Options {
  RecordStreamOptions stream;
  SelectionChoice selection;
  std::string generator = "uniform";
  double temperature = 1;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  const records::SelectionOptions selection = selection_of(o.selection, o.stream.common.seed);
  std::unique_ptr<records::Corruption> corruption;
  if (o.generator.starts_with("join:")) {
    corruption = make_joined_electra(o.generator.substr(5), tokens.table());
  } else {
    records::ElectraRecordOptions electra{.selection = selection, .temperature = o.temperature};
    if (o.generator.starts_with("unigram:")) {
      electra.weights = commands::read_weights(o.generator.substr(8), tokens.names());
    } else if (o.generator != "uniform") {
      throw UsageError("--generator: expected uniform, unigram:FILE or join:FILE");
    }
    corruption = make_electra(electra, tokens.table());
  }
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_electra(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("electra", "replaces tokens by a generator's; labels mark those that differ");
  c.example("droptoken electra --tokenizer electra/ --special < text > records",
            "replaces 15 % of the tokens by uniform draws");
  c.example("droptoken electra --tokenizer electra/ --generator unigram:counts.tsv --temperature 2",
            "draws by frequency, flattened by the temperature");
  c.example("droptoken electra --tokenizer electra/ --generator join:samples.jsonl < records",
            "samples of another program, joined by record number");
  add_selection(c, o->selection);
  c.option("--generator", "HOW", o->generator,
           "uniform; unigram:FILE, with a token and a count in each line; or join:FILE, a file of "
           "records with sampled ids for each line");
  c.option("--temperature", "T", o->temperature, cli::AllowedRange{1e-6, 1e6},
           "raise the counts to the power 1/T");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  add_binary(c, o->stream);
  c.read_only_if(
      {"temperature"}, [o] { return o->generator.starts_with("unigram:"); },
      "without --generator unigram:FILE");
  c.read_only_if(
      {"rate", "unit", "choice", "seed"}, [o] { return !o->generator.starts_with("join:"); },
      "with --generator join:FILE, whose samples decide");
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
