// attn-probe fields: what stats can measure.
#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "stats_output.hpp"

namespace masque::attn_probe {

using evaluate::MeasuredPer;

namespace {

std::string_view word_of(MeasuredPer per) {
  switch (per) {
    case MeasuredPer::kRow: return "row";
    case MeasuredPer::kSentence: return "sentence";
    case MeasuredPer::kSlope: return "slope over sentences";
    case MeasuredPer::kRank: break;
  }
  return "sentence of --rank";
}

}  // namespace

void declare_fields(cli::Command& tool) {
  auto o = std::make_shared<cli::CommonOptions>();
  cli::Command& c = tool.subcommand("fields", "lists the fields of stats with their formulas");
  c.example(
      "attn-probe fields",
      "p is a row i of a map with v visible keys, divided by its sum; n is the number of rows");
  cli::add_table(c, *o);
  c.action([o](cli::Session& session) {
    session.configure(*o);
    cli::Table table(session, *o, {"field", "per", "formula"});
    for (const Column& column : all_columns({"TOKEN"}))
      table.row({column.name, word_of(column.per), column.formula});
    table.finish();
    return cli::ExitCode::kDone;
  });
}

}  // namespace masque::attn_probe
