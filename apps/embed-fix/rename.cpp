// embed-fix rename: other names for tokens; the rows stay.
#include <memory>

#include "commands.hpp"
#include "surgery/vocabulary/vocabulary_spelling.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  std::vector<std::string> names;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  const std::vector<std::string> entries = read_list(o.names, o, session);
  return run_vocabulary(o, session, [&](const surgery::VocabularyState& state) {
    surgery::check_editable(state.checkpoint, state.names);
    std::vector<std::pair<std::string, std::string>> names;
    names.reserve(entries.size());
    for (const std::string& entry : entries) names.push_back(surgery::parse_renaming(state, entry));
    return surgery::plan_rename(state, names);
  });
}

}  // namespace

void declare_rename(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("rename", "renames tokens in all tokenizer files; weights stay unchanged");
  c.example("embed-fix rename bert-base/ '[unused5]=covid' -o renamed/",
            "gives an unused row a word; its values stay unchanged");
  c.example("embed-fix rename bert-base/ @names.txt -o renamed/", "reads one OLD=NEW per line");
  declare_vocabulary_options(c, *o, NewRowsOption::kNone);
  c.arguments("OLD=NEW", o->names,
              "a token and its new name; @FILE: one OLD=NEW per line of a file");
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
