// embed-fix remove: rows and their tokens go, later ids move down.
#include <memory>

#include "commands.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  surgery::TokenList list;
};

}  // namespace

void declare_remove(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("remove", "rows and their tokens go; later ids move down");
  c.example("embed-fix remove bert-base/ '[unused1]' '[unused2]' -o smaller/", "two tokens less");
  declare_vocabulary_options(c, *o, NewRowsOption::kNone);
  declare_list(c, o->list, "tokens or ids");
  c.action([o](cli::Session& session) {
    const surgery::TokenList list{read_list(o->list.entries, *o, session), o->list.as};
    return run_vocabulary(*o, session, [&](const surgery::VocabularyState& state) {
      return surgery::plan_remove(state, list);
    });
  });
}

}  // namespace masque::embed_fix
