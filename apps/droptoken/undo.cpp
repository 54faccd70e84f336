// droptoken undo: back to the records before their corruption.
#include "records/undo.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

cli::ExitCode run(const RecordStreamOptions& o, cli::Session& session) {
  session.configure(o.common);
  const Tokens tokens(o);
  const auto corruption = records::make_undo();
  return run_stream(o, tokens, corruption.get(), session);
}

}  // namespace

void declare_undo(cli::Command& tool) {
  auto o = std::make_shared<RecordStreamOptions>();
  cli::Command& c = tool.subcommand("undo", "restores the ids from original, labels and dropped");
  c.example(
      "droptoken drop --rate .3 < ids | droptoken mlm --mask-token 4 --vocab-size 99 | droptoken "
      "undo",
      "restores the original ids");
  add_reading(c, *o);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
