// embed-fix keep: a vocabulary of the listed tokens alone.
#include <memory>

#include "commands.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  surgery::TokenList list;
};

}  // namespace

void declare_keep(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "keep", "the listed rows alone, in the order of their ids, and those of special tokens");
  c.example("embed-fix keep bert-base/ @used.txt -o smaller/", "a vocabulary of one's own text");
  declare_vocabulary_options(c, *o, NewRowsOption::kNone);
  declare_list(c, o->list, "tokens or ids");
  c.action([o](cli::Session& session) {
    const surgery::TokenList list{read_list(o->list.entries, *o, session), o->list.as};
    return run_vocabulary(*o, session, [&](const surgery::VocabularyState& state) {
      return surgery::plan_keep(state, list);
    });
  });
}

}  // namespace masque::embed_fix
