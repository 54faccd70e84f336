// embed-fix neighbours: the rows nearest to a token's row.
#include <memory>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "shared_options.hpp"
#include "surgery/rows/row_expression.hpp"
#include "surgery/rows/table_stats.hpp"
#include "table_argument.hpp"

namespace masque::embed_fix {

namespace {

struct Options {
  std::string checkpoint;
  std::string token;
  std::optional<std::string> tensor;
  int count = 10;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const TableArgument a(o.checkpoint, o.tensor, session);
  const std::uint64_t row =
      surgery::find_row(o.token, a.names, a.table.rows(), a.checkpoint.path());
  if (const auto other = a.names.id(o.token); other && *other != row) {
    session.note(fmt::format("'{}' is read as an id; the token with this spelling has id {}",
                             escape(o.token), *other));
  }
  const auto nearest = surgery::nearest_rows(a.checkpoint, a.input(), row,
                                             static_cast<std::size_t>(o.count), o.common.threads);
  cli::Table table(session, o.common, {"rank", "id", "token", "cosine"});
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    table.row({static_cast<std::uint64_t>(i + 1), nearest[i].row, a.names.token(nearest[i].row),
               nearest[i].cosine});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_neighbours(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "neighbours", "prints the rows nearest to a token's row by cosine similarity");
  c.example("embed-fix neighbours bert-base/ king -k 5", "prints the five nearest tokens");
  cli::add_checkpoint(c, o->checkpoint);
  c.argument("TOKEN", o->token,
             "a token, spelled as in the vocabulary, or an id; a number is always an id");
  c.option("-k,--count", "N", o->count, cli::AllowedRange{1, 1e6}, "number of neighbours");
  add_tensor(c, o->tensor);
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
