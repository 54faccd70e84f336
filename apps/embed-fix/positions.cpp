// embed-fix positions: another number of learned positions.
#include <memory>

#include "commands.hpp"
#include "edit_options.hpp"
#include "surgery/positions/resize_positions.hpp"

namespace masque::embed_fix {

namespace {

struct Options : EditOptions {
  std::string positions;
  std::optional<std::int64_t> offset;
  surgery::PositionsRequest request;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  surgery::PositionsRequest& request = o.request;
  const std::string out = settle(o, request, session);
  request.positions = read_count(o.positions);
  if (o.offset) request.offset = static_cast<std::uint64_t>(*o.offset);
  const surgery::PositionsReport r = surgery::resize_positions(o.in, out, request);
  cli::Report report;
  report.add("tensor", r.tensor);
  report.add("dtype", dtype_name(r.dtype));
  report.add("shape_before", shape_cell(r.before));
  report.add("shape_after", shape_cell(r.after));
  report.add("offset", r.offset);
  report.add("positions_before", r.positions_before);
  report.add("positions_after", request.positions);
  finish(o, r, report, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_positions(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("positions", "extends or shortens the table of learned positions");
  c.example(
      "embed-fix positions bert-base/ 2048 --how hierarchical -o bert-2048/",
      "extends 512 positions to 2048 (weighted sums of two rows); the first 512 stay unchanged");
  c.example("embed-fix positions roberta-base/ 128 --how truncate -o roberta-128/",
            "keeps 128 usable positions, stored in 130 rows");
  add_checkpoint(c, *o);
  c.argument("N", o->positions, "number of usable positions");
  c.option("--how", "WAY", o->request.how,
           "how to compute the new rows: " + surgery::position_extension_spellings(),
           cli::Need::kRequired);
  c.option("--offset", "K", o->offset, cli::AllowedRange{0, 1e6},
           "rows before the first position [determined by the model family]");
  add_tensor(c, o->request, "the table of positions");
  add_edit_options(c, *o, o->request);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
