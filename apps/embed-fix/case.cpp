// embed-fix case: the cased forms of a vocabulary of lower-case tokens.
#include <memory>

#include "commands.hpp"
#include "shared_options.hpp"
#include "surgery/vocabulary/vocabulary_spelling.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  surgery::CaseOptions forms;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  o.request.change_files = [](surgery::CheckpointEdit& edit, const surgery::TokenNames& names,
                              const surgery::VocabularyChange& change) {
    std::vector<std::string> notes = surgery::keep_case(edit);
    for (std::string& note : surgery::change_vocabulary_files(edit, names, change))
      notes.push_back(std::move(note));
    return notes;
  };
  return run_vocabulary(o, session, [&](const surgery::VocabularyState& state) {
    surgery::check_editable(state.checkpoint, state.names);
    return surgery::plan_case(state, o.forms);
  });
}

}  // namespace

void declare_case(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "case",
      "adds cased forms to an uncased WordPiece vocabulary, as copies of the lower-case rows");
  c.example("embed-fix case bert-base-uncased/ -o bert-cased/",
            "Paris starts as a copy of paris; further training can separate them");
  declare_vocabulary_options(c, *o, NewRowsOption::kNone);
  c.flag("--upper", o->forms.upper, "also adds forms all in capitals");
  add_multiple(c, o->forms.multiple);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
