// embed-fix remove, keep, permute: the rows that a list names.
#include <array>
#include <memory>

#include "commands.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  surgery::TokenList list;
};

/// A command that makes a vocabulary of a list.
struct ListedRows {
  const char* name;
  const char* summary;
  const char* example;
  const char* what;  ///< the example does
  const char* list;  ///< help of the list
  surgery::VocabularyChange (*plan)(const surgery::VocabularyState& state,
                                    const surgery::TokenList& list);
};

constexpr std::array<ListedRows, 3> kCommands{{
    {.name = "remove",
     .summary = "rows and their tokens go; later ids move down",
     .example = "embed-fix remove bert-base/ '[unused1]' '[unused2]' -o smaller/",
     .what = "two tokens less",
     .list = "tokens or ids",
     .plan = surgery::plan_remove},
    {.name = "keep",
     .summary = "the listed rows alone, in the order of their ids, and those of special tokens",
     .example = "embed-fix keep bert-base/ @used.txt -o smaller/",
     .what = "a vocabulary of one's own text",
     .list = "tokens or ids",
     .plan = surgery::plan_keep},
    {.name = "permute",
     .summary = "the rows in another order",
     .example = "embed-fix permute bert-base/ @order.txt -o ordered/",
     .what = "the new vocabulary, one token or id a line",
     .list = "all tokens or ids, in their new order; rows without token may miss",
     .plan = surgery::plan_permute},
}};

}  // namespace

void declare_listed_rows(cli::Command& tool) {
  for (const ListedRows& command : kCommands) {
    auto o = std::make_shared<Options>();
    cli::Command& c = tool.subcommand(command.name, command.summary);
    c.example(command.example, command.what);
    declare_vocabulary_options(c, *o, NewRowsOption::kNone);
    declare_list(c, o->list, command.list);
    c.action([o, plan = command.plan](cli::Session& session) {
      const surgery::TokenList list{read_list(o->list.entries, *o, session), o->list.as};
      return run_vocabulary(
          *o, session, [&](const surgery::VocabularyState& state) { return plan(state, list); });
    });
  }
}

}  // namespace masque::embed_fix
