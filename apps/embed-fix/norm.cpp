// embed-fix norm: rows of the input table scaled to one norm.
#include <memory>

#include "commands.hpp"
#include "edit_options.hpp"
#include "surgery/patch/patch_rows.hpp"

namespace masque::embed_fix {

namespace {

struct Options : EditOptions {
  surgery::NormRequest request;
  bool unit = false;
  bool mean = false;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  surgery::NormRequest& request = o.request;
  const std::string out = settle(o, request, session);
  if ((request.to ? 1 : 0) + (o.unit ? 1 : 0) + (o.mean ? 1 : 0) != 1)
    throw UsageError("expected one of --to, --unit and --mean");
  if (o.unit) request.to = 1;
  const surgery::NormReport r = surgery::scale_to_norm(o.in, out, request);
  cli::Report report;
  report.add("tensor", r.tensor);
  report.add("rows", r.rows);
  report.add("zero_rows", r.zero_rows);
  report.add("norm_before", r.norm_before);
  report.add("norm_after", r.norm);
  finish(o, r, report, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_norm(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("norm", "scales rows of the input table to the same norm");
  c.example("embed-fix norm bert-base/ --mean -o bert-equal/",
            "scales all rows to their mean norm");
  c.example("embed-fix norm bert-base/ --unit --rows 1000-1999,king -o out/",
            "scales a range of ids and one token to norm 1");
  add_checkpoint(c, *o);
  c.option("--to", "X", o->request.to, cli::AllowedRange{1e-30, 1e30},
           "target Euclidean norm of each row");
  c.flag("--unit", o->unit, "same as --to 1");
  c.flag("--mean", o->mean, "scales to the mean norm of the rows");
  c.option("--rows", "LIST", o->request.rows,
           "ids, ranges of ids A-B and tokens, separated by commas [all]");
  add_tied(c, o->request.tied);
  add_tensor(c, o->request, "the table");
  add_edit_options(c, *o, o->request);
  add_in_place(c, *o);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
