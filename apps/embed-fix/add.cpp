// embed-fix add: new tokens, with rows that an initializer makes.
#include <memory>

#include "base/error.hpp"
#include "commands.hpp"
#include "shared_options.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

enum class ExistingToken { kRefuse, kSkip };

struct Options : VocabularyOptions {
  std::vector<std::string> tokens;
  std::optional<std::uint64_t> count;
  std::uint64_t multiple = 1;
  ExistingToken existing = ExistingToken::kRefuse;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  const std::vector<std::string> tokens = read_list(o.tokens, o, session);
  if (tokens.empty() == !o.count) throw UsageError("expected either TOKENS or --count N");
  if (o.count && o.existing == ExistingToken::kSkip)
    throw UsageError("--existing skip cannot be combined with --count");
  return run_vocabulary(o, session, [&](const surgery::VocabularyState& state) {
    if (o.count) return surgery::plan_append(state, *o.count, o.multiple);
    surgery::check_editable(state.checkpoint, state.names);
    return surgery::plan_add(state, tokens, o.existing == ExistingToken::kSkip, o.multiple);
  });
}

}  // namespace

void declare_add(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "add",
      "adds tokens with new rows to the tables, the output head, config and tokenizer files");
  c.example("embed-fix add bert-base/ covid lockdown --init subword -o bert-new/",
            "adds two tokens; each row starts as the mean of the token's pieces");
  c.example("embed-fix add bert-base/ @words.txt --multiple 64 -o bert-new/",
            "reads one token per line; pads the table to a multiple of 64 rows");
  declare_vocabulary_options(c, *o, NewRowsOption::kInit);
  c.arguments("TOKENS", o->tokens,
              "new tokens, spelled as in the vocabulary; @FILE: one token per line of a file",
              cli::Need::kOptional);
  c.choice("--existing", o->existing,
           {{"refuse", ExistingToken::kRefuse}, {"skip", ExistingToken::kSkip}},
           "what to do with existing tokens: refuse them (exit 3) or skip them");
  c.option("--count", "N", o->count,
           "adds N rows without tokens, for a checkpoint without a tokenizer");
  add_multiple(c, o->multiple);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
