// embed-fix diff: two tables row by row.
#include <memory>

#include <fmt/format.h>

#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "shared_options.hpp"
#include "surgery/rows/table_stats.hpp"
#include "table_argument.hpp"

namespace masque::embed_fix {

namespace {

struct Options {
  std::string a;
  std::string b;
  std::optional<std::string> tensor;
  int count = 20;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const TableArgument a(o.a, o.tensor, session);
  const TableArgument b(o.b, o.tensor, session);
  const surgery::TableDiff diff =
      surgery::table_diff(a.checkpoint, a.input(), b.checkpoint, b.input(),
                          static_cast<std::size_t>(o.count), o.common.threads);
  cli::Table table(session, o.common, {"id", "token", "norm_a", "norm_b", "distance", "cosine"});
  for (const surgery::RowChange& change : diff.top) {
    table.row({change.row, a.names.token(change.row), change.norm_a, change.norm_b, change.distance,
               change.cosine});
  }
  table.finish();
  session.note(fmt::format("{} of {} rows differ, largest distance {:.6g}, mean cosine {:.6g}",
                           diff.changed, diff.rows, diff.max_distance, diff.mean_cosine));
  if (a.table.rows() != b.table.rows()) {
    session.note(fmt::format("the tables have {} and {} rows", a.table.rows(), b.table.rows()));
  }
  const bool same = diff.changed == 0 && a.table.rows() == b.table.rows();
  return same ? cli::ExitCode::kDone : cli::ExitCode::kFound;
}

}  // namespace

void declare_diff(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("diff", "compares two tables row by row; exit 1 if a row differs");
  c.example("embed-fix diff bert-base/ bert-corrected/ -k 5", "the five rows that moved most");
  cli::add_checkpoint(c, o->a, "A");
  c.argument("B", o->b, "the checkpoint to compare with");
  c.option("-k,--count", "N", o->count, cli::AllowedRange{0, 1e9},
           "number of rows to list, farthest first");
  add_tensor(c, o->tensor, "the table in both checkpoints");
  add_threads(c, o->common);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
