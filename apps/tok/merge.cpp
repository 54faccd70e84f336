// tok merge: token folders as one.
#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "records/token_folder_writer.hpp"

namespace masque::tok {

namespace {

struct Options {
  std::vector<std::string> folders;
  std::string output;
  cli::CommonOptions common;
};

}  // namespace

void declare_merge(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("merge", "writes the sequences of token folders as one token folder");
  c.example("tok merge part1 part2 -o tokens", "the folder that the whole text would have made");
  c.arguments("FOLDER", o->folders, "token folders, as tok encode --to writes them, in order");
  c.option("-o,--output", "FOLDER", o->output, "a new token folder", cli::Need::kRequired);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) {
    session.configure(o->common);
    records::merge_token_folders(o->folders, o->output);
    return cli::ExitCode::kDone;
  });
}

}  // namespace masque::tok
