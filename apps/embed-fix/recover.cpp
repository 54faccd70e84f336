// embed-fix recover: takes back a change in place that was cut short.
#include <memory>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/in_place.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "in_place_choice.hpp"
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
  if (locked.recovered().empty()) session.note("nothing to take back");
  for (const std::string& name : locked.recovered())
    session.note(fmt::format("'{}': as it was before the change that was cut short", escape(name)));
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_recover(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("recover", "takes back a change with --in-place that was cut short");
  c.example("embed-fix recover bert-base/",
            "after a crash; does nothing if there is nothing to do");
  cli::add_checkpoint(c, o->checkpoint);
  add_wait(c, o->wait_seconds);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
