// embed-fix recover: takes back a change in place that was cut short.
#include <memory>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/file/in_place.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "shared_options.hpp"
#include "store/checkpoint.hpp"

namespace masque::embed_fix {

namespace {

struct Options {
  std::string checkpoint;
  std::optional<double> wait_seconds;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const LockedFiles locked = store::lock_checkpoint(o.checkpoint, o.wait_seconds.value_or(0));
  if (locked.recovered().empty()) session.note("nothing to roll back");
  for (const std::string& name : locked.recovered())
    session.note(
        fmt::format("'{}': rolled back to its state before the interrupted change", escape(name)));
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_recover(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("recover", "rolls back an interrupted change with --in-place");
  c.example("embed-fix recover bert-base/",
            "for use after a crash; does nothing if no change was interrupted");
  cli::add_checkpoint(c, o->checkpoint);
  c.changes("CHECKPOINT");
  add_wait(c, o->wait_seconds);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
