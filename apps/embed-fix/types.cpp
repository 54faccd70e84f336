// embed-fix types: another number of token types.
#include <memory>

#include "commands.hpp"
#include "edit_options.hpp"
#include "surgery/positions/resize_types.hpp"

namespace masque::embed_fix {

namespace {

struct Options : EditOptions {
  std::string types;
  surgery::TypesRequest request;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  surgery::TypesRequest& request = o.request;
  const std::string out = settle(o, request, session);
  request.types = read_count(o.types);
  const surgery::TypesReport r = surgery::resize_types(o.in, out, request);
  cli::Report report;
  report.add("tensor", r.tensor);
  report.add("dtype", dtype_name(r.dtype));
  report.add("shape_before", shape_cell(r.before));
  report.add("shape_after", shape_cell(r.after));
  finish(o, r, report, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_types(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("types", "changes the number of token types");
  c.example("embed-fix types bert-base/ 4 --init copy:1 -o bert-4/",
            "adds two token types that start as copies of type 1");
  add_checkpoint(c, *o);
  c.argument("N", o->types, "number of token types");
  c.option("--init", "KIND", o->request.init,
           "new rows: mean (of the old rows), zero or copy:K (of type K) [mean]");
  add_tensor(c, o->request, "the table of token types");
  add_edit_options(c, *o, o->request);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
