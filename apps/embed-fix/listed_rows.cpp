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
  bool trims;        ///< tokens may go
  surgery::VocabularyChange (*plan)(const surgery::VocabularyState& state,
                                    const surgery::TokenList& list);
};

constexpr std::array<ListedRows, 3> kCommands{{
    {.name = "remove",
     .summary = "removes tokens and their rows; later ids move down",
     .example = "embed-fix remove bert-base/ '[unused1]' '[unused2]' -o smaller/",
     .what = "removes two tokens",
     .list = "tokens or ids",
     .trims = true,
     .plan = surgery::plan_remove},
    {.name = "keep",
     .summary = "keeps only the listed rows and those of special tokens, in the order of their ids",
     .example = "embed-fix keep bert-base/ @used.txt -o smaller/",
     .what = "keeps only the tokens listed in used.txt",
     .list = "tokens or ids",
     .trims = true,
     .plan = surgery::plan_keep},
    {.name = "permute",
     .summary = "reorders the rows",
     .example = "embed-fix permute bert-base/ @order.txt -o ordered/",
     .what = "order.txt lists one token or id per line, in the new order",
     .list = "all tokens or ids in their new order; rows without a token may be omitted",
     .trims = false,
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
    if (command.trims) {
      c.choice("--passed", o->list.passed,
               {{"keep", surgery::TokenList::Passed::kKeep},
                {"remove", surgery::TokenList::Passed::kRemove}},
               "what to do with tokens that merges pass through to remaining tokens: keep them, or "
               "remove them and the tokens made from them");
    }
    c.action([o, plan = command.plan](cli::Session& session) {
      surgery::TokenList list = o->list;
      list.entries = read_list(o->list.entries, *o, session);
      return run_vocabulary(
          *o, session, [&](const surgery::VocabularyState& state) { return plan(state, list); });
    });
  }
}

}  // namespace masque::embed_fix
