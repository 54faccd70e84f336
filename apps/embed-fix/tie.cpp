// embed-fix tie, untie: one matrix for the input table and the output head, or two.
#include <memory>

#include "commands.hpp"
#include "edit_options.hpp"
#include "surgery/edit/head.hpp"

namespace masque::embed_fix {

namespace {

struct TieOptions : EditOptions {
  surgery::TieRequest request;
};

cli::ExitCode run_tie(TieOptions& o, cli::Session& session) {
  const std::string out = settle(o, o.request, session);
  const surgery::TieReport r = surgery::tie_checkpoint(o.in, out, o.request);
  cli::Report report;
  report.add("head", r.head);
  report.add("rows_different", r.rows_different);
  report.add("largest_difference", r.largest_difference);
  finish(o, r, report, session);
  return cli::ExitCode::kDone;
}

struct UntieOptions : EditOptions {
  surgery::EditRequest request;
};

cli::ExitCode run_untie(UntieOptions& o, cli::Session& session) {
  const std::string out = settle(o, o.request, session);
  const surgery::UntieReport r = surgery::untie_checkpoint(o.in, out, o.request);
  cli::Report report;
  report.add("head", r.head);
  finish(o, r, report, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_tie(cli::Command& tool) {
  auto o = std::make_shared<TieOptions>();
  cli::Command& c = tool.subcommand("tie", "makes the output head share the input table");
  c.example("embed-fix tie bert-untied/ -o bert/",
            "removes the head's matrix, which must equal the table");
  add_checkpoint(c, *o);
  c.flag("--drop", o->request.drop, "removes the head's matrix even if it differs from the table");
  add_edit_options(c, *o, o->request);
  c.action([o](cli::Session& session) { return run_tie(*o, session); });
}

void declare_untie(cli::Command& tool) {
  auto o = std::make_shared<UntieOptions>();
  cli::Command& c =
      tool.subcommand("untie", "gives the output head its own copy of the input table");
  c.example("embed-fix untie bert-base/ -o bert-untied/",
            "lets the table change without the output head");
  add_checkpoint(c, *o);
  add_edit_options(c, *o, o->request);
  c.action([o](cli::Session& session) { return run_untie(*o, session); });
}

}  // namespace masque::embed_fix
