// embed-fix stats: norms and anisotropy of a table, special tokens against its mean.
#include <memory>

#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "shared_options.hpp"
#include "surgery/rows/table_stats.hpp"
#include "table_argument.hpp"

namespace masque::embed_fix {

namespace {

struct Options {
  std::string checkpoint;
  std::optional<std::string> tensor;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const TableArgument a(o.checkpoint, o.tensor, session);
  const surgery::TableStats stats = surgery::table_stats(a.checkpoint, a.input(), o.common.threads);
  cli::Report report;
  report.add("tensor", a.input().name);
  report.add("dtype", dtype_name(a.input().dtype));
  report.add("rows", stats.rows);
  report.add("width", stats.width);
  report.add("norm_min", stats.norm_minimum);
  report.add("norm_mean", stats.norm_mean);
  report.add("norm_max", stats.norm_maximum);
  report.add("norm_std", stats.norm_deviation);
  report.add("zero_rows", stats.zero_rows);
  report.add("not_finite_rows", stats.not_finite_rows);
  report.add("mean_row_norm", stats.mean_norm);
  report.add("mean_pair_cosine", stats.mean_cosine);
  for (const char* role : {"mask_token", "unk_token", "pad_token", "cls_token", "sep_token"}) {
    const auto row = o.tensor ? std::nullopt : a.names.role(role);  // another table has other rows
    if (!row || *row >= stats.rows) continue;
    const surgery::RowAgainstMean special =
        surgery::row_against_mean(a.checkpoint, a.input(), *row, stats.mean);
    report.add(std::string(role), a.names.token(*row));
    report.add(std::string(role) + "_norm", special.norm);
    report.add(std::string(role) + "_cosine_to_mean", special.cosine);
    report.add(std::string(role) + "_distance_to_mean", special.distance);
  }
  report.print(session, o.common);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_stats(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "stats",
      "prints norms and anisotropy of the table, and compares special tokens with its mean");
  c.example("embed-fix stats bert-base/", "prints one number per line");
  cli::add_checkpoint(c, o->checkpoint);
  add_tensor(c, o->tensor);
  add_threads(c, o->common);
  add_report(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
