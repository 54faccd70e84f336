// embed-fix permute: the rows in another order.
#include <memory>

#include "commands.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  surgery::TokenList list;
};

}  // namespace

void declare_permute(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("permute", "the rows in another order");
  c.example("embed-fix permute bert-base/ @order.txt -o ordered/",
            "the new vocabulary, one token or id a line");
  declare_vocabulary_options(c, *o, NewRowsOption::kNone);
  declare_list(c, o->list, "all tokens or ids, in their new order; rows without token may miss");
  c.action([o](cli::Session& session) {
    const surgery::TokenList list{read_list(o->list.entries, *o, session), o->list.as};
    return run_vocabulary(*o, session, [&](const surgery::VocabularyState& state) {
      return surgery::plan_permute(state, list);
    });
  });
}

}  // namespace masque::embed_fix
