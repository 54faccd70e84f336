// embed-fix swap-vocab: another tokenizer, and rows that fit it.
#include <memory>

#include "commands.hpp"
#include "shared_options.hpp"
#include "surgery/vocabulary/swap_vocabulary.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  std::string vocabulary;
  std::uint64_t multiple = 1;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  const surgery::NewTokenizer tokenizer(o.vocabulary);
  o.request.means = [&](const surgery::RowInitContext& context) {
    return tokenizer.pieces(context);
  };
  o.request.change_files = [&](surgery::CheckpointEdit& edit, const surgery::TokenNames& names,
                               const surgery::VocabularyChange&) {
    return tokenizer.write(edit, names);
  };
  o.request.other_tokenizer = true;
  o.request.roles = [&](std::string_view name) { return tokenizer.id_of_role(name); };
  return run_vocabulary(o, session, [&](const surgery::VocabularyState& state) {
    return tokenizer.plan(state, o.multiple);
  });
}

}  // namespace

void declare_swap_vocab(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "swap-vocab",
      "replaces the tokenizer: keeps rows of shared tokens, others become means of old pieces");
  c.example("embed-fix swap-vocab bert-base/ wobert/vocab.txt -o bert-words/",
            "gives a character-based model a word vocabulary");
  declare_vocabulary_options(c, *o, NewRowsOption::kNone);
  c.argument("NEW", o->vocabulary, "a folder with a tokenizer, or a vocab.txt or tokenizer.json");
  add_multiple(c, o->multiple);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
